"""BLEU and chrF, and the comparison of two systems, as sacrebleu computes them; RIBES by NLTK."""

from collections.abc import Callable, Sequence, Sized
from typing import Any, NamedTuple

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.significance import PairedTest

from seq2seq_memattn.packages import needed
from seq2seq_memattn.text.form import FormedLines

# Which form of the text each is computed from.
FORMS: dict[str, Callable[[FormedLines], list[str]]] = {
    "bleu": lambda lines: lines.tokenised,
    "standard_bleu": lambda lines: lines.readable,
    "chrf": lambda lines: lines.readable,
}
RIBES_ALPHA, RIBES_BETA = 0.25, 0.1  # the exponents of RIBES's own script


class Score(NamedTuple):
    """A score with what is needed to reproduce it.

    Fields:
        score: float, 0 to 100.
        signature: sacrebleu's, or one of that form.
    """

    score: float
    signature: str


class Comparison(NamedTuple):
    """A system and a baseline on the same references, by paired bootstrap resampling.

    Fields:
        score, baseline: float, 0 to 100. The scores of both.
        ci, baseline_ci: float. Half the width of their 95 % confidence intervals.
        p_value: float in (0, 1]. How often a difference as large would come by chance; 1 for equal
            scores, where sacrebleu gives the smallest value that it has.
        signature: sacrebleu's, with the number of resamples ("bs") and their seed.
    """

    score: float
    baseline: float
    ci: float
    baseline_ci: float
    p_value: float
    signature: str


def tokenised_bleu(
    hypotheses: Sequence[str], references: Sequence[str], lowercase: bool = False
) -> Score:
    """BLEU of tokenised lines, equal to multi-bleu.perl of Moses to two decimals.

    Raises:
        ValueError: if the numbers of lines differ, or there is none.
    """
    return _score("bleu", hypotheses, references, lowercase)


def smoothed_bleu(hypotheses: Sequence[str], references: Sequence[str]) -> Score:
    """Mean over tokenised sentences of BLEU with one added to the counts of 2-grams and longer.

    Source: Lin and Och (2004), "ORANGE", section 4: BLEUS.

    Raises:
        ValueError: if the numbers of lines differ, or there is none.
    """
    _check_lines(hypotheses, references)
    metric = BLEU(tokenize="none", smooth_method="add-k", smooth_value=1.0, force=True)
    scores = [
        # Not sacrebleu's `sentence_score`, which advises another smoothing at every call.
        metric.corpus_score([ours], [[theirs]]).score
        for ours, theirs in zip(hypotheses, references, strict=True)
    ]
    return Score(sum(scores) / len(scores), str(metric.get_signature()))


def corpus_scores(
    hypotheses: FormedLines, references: FormedLines, lowercase: bool = False
) -> dict[str, Score]:
    """Every score of the same lines, each computed from the form that it is meant for.

    Args:
        hypotheses, references: `FormedLines`.
        lowercase: bool. Whether case is left out of account.

    Returns:
        bleu: `tokenised_bleu`, of the lines tokenised.
        standard_bleu: sacrebleu's default, which tokenises (13a), of the lines as readers get them.
        chrf: chrF2, of characters without spaces, of the same.

    Raises:
        ValueError: if the numbers of lines differ, or there is none.
    """
    return {
        name: _score(name, formed(hypotheses), formed(references), lowercase)
        for name, formed in FORMS.items()
    }


def ribes(hypotheses: FormedLines, references: FormedLines, lowercase: bool = False) -> Score:
    """RIBES, which minds the order of words, of tokenised lines.

    Source: Isozaki et al. (2010), as NLTK has it; the mean over sentences, 0 to 100.

    Raises:
        ValueError: if the numbers of lines differ, or there is none.
    """
    with needed():
        import nltk
        from nltk.translate.ribes_score import corpus_ribes

    _check_lines(hypotheses, references)
    ours, theirs = (
        [(line.lower() if lowercase else line).split() for line in lines.tokenised]
        for lines in (hypotheses, references)
    )
    score = corpus_ribes([[reference] for reference in theirs], ours, RIBES_ALPHA, RIBES_BETA)
    case = "lc" if lowercase else "mixed"
    signature = f"nrefs:1|case:{case}|alpha:{RIBES_ALPHA}|beta:{RIBES_BETA}"
    return Score(100.0 * score, f"{signature}|nltk:{nltk.__version__}")


def paired_bootstrap(
    hypotheses: FormedLines,
    baseline: FormedLines,
    references: FormedLines,
    lowercase: bool = False,
) -> dict[str, Comparison]:
    """Compares a system with a baseline, in each score of `corpus_scores`.

    Source: Koehn (2004), as sacrebleu has it, with its number of resamples and its seed (which the
    environment variable SACREBLEU_SEED changes).

    Raises:
        ValueError: if the numbers of lines differ, or there is none.
    """
    for lines in (hypotheses, baseline):
        _check_lines(lines, references)
    comparisons = {}
    for name, formed in FORMS.items():
        systems: Any = [("baseline", formed(baseline)), ("system", formed(hypotheses))]
        truth = [formed(references)]
        test = PairedTest(systems, {name: _metric(name, lowercase)}, truth, "bs")
        signatures, results = test()
        (key,) = signatures  # sacrebleu's name of the metric; both kinds of BLEU have the same
        found: Any = results[key]
        theirs, ours = found
        p_value = ours.p_value if ours.score != theirs.score else 1.0
        comparisons[name] = Comparison(
            score=float(ours.score),
            baseline=float(theirs.score),
            ci=float(ours.ci),
            baseline_ci=float(theirs.ci),
            p_value=float(p_value),
            signature=str(signatures[key]),
        )
    return comparisons


def _score(
    name: str, hypotheses: Sequence[str], references: Sequence[str], lowercase: bool
) -> Score:
    _check_lines(hypotheses, references)
    metric = _metric(name, lowercase)
    score = metric.corpus_score(list(hypotheses), [list(references)])
    return Score(score.score, str(metric.get_signature()))


def _metric(name: str, lowercase: bool) -> Any:
    """A new metric; `force` silences the remark that lines look tokenised."""
    if name == "bleu":
        return BLEU(lowercase, force=True, tokenize="none", smooth_method="none")
    if name == "standard_bleu":
        return BLEU(lowercase, force=True)
    return CHRF(lowercase=lowercase)


def _check_lines(hypotheses: Sized, references: Sized) -> None:
    if len(hypotheses) != len(references):
        raise ValueError(
            f"expected as many references as hypotheses, {len(hypotheses)}; got {len(references)}"
        )
    if not len(references):
        raise ValueError("expected at least one reference; got none")


def bleu_by_length(
    hypotheses: Sequence[str],
    references: Sequence[str],
    num_groups: int = 5,
    lowercase: bool = False,
) -> list[dict[str, float]]:
    """BLEU of groups of about as many lines each, by the length of their references.

    Lines whose references are equally long are in one group.

    Lines shorter than four tokens have no 4-grams; a group of such lines alone scores 0.

    Args:
        hypotheses, references: tokenised lines.
        num_groups: int > 0.
        lowercase: bool. Whether case is left out of account in BLEU.

    Returns:
        For each group, `shortest` and `longest` reference in tokens, `lines`, `bleu` and
        `exact`, the share of lines that equal their reference.
    """
    lengths = [len(line.split()) for line in references]
    order = sorted(range(len(references)), key=lengths.__getitem__)
    groups: list[dict[str, float]] = []
    end = 0
    for group in range(1, num_groups + 1):
        start, end = end, max(end, group * len(order) // num_groups)
        while 0 < end < len(order) and lengths[order[end]] == lengths[order[end - 1]]:
            end += 1
        chosen = order[start:end]
        if not chosen:
            continue
        ours, theirs = [hypotheses[i] for i in chosen], [references[i] for i in chosen]
        exact = sum(a == b for a, b in zip(ours, theirs, strict=True)) / len(chosen)
        groups.append(
            {
                "shortest": lengths[chosen[0]],
                "longest": lengths[chosen[-1]],
                "lines": len(chosen),
                "bleu": tokenised_bleu(ours, theirs, lowercase).score,
                "exact": exact,
            }
        )
    return groups
