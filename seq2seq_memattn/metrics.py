"""Scores of translations: BLEU, chrF and comparisons by sacrebleu, RIBES by NLTK."""

from collections.abc import Callable, Sequence, Sized
from typing import Any, NamedTuple

import numpy as np
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.significance import PairedTest

from seq2seq_memattn.packages import needed
from seq2seq_memattn.text.form import FormedLines

# The form of the text from which each score is computed.
FORMS: dict[str, Callable[[FormedLines], list[str]]] = {
    "bleu": lambda lines: lines.tokenised,
    "standard_bleu": lambda lines: lines.readable,
    "chrf": lambda lines: lines.readable,
}
RESAMPLES = 1000  # for confidence intervals, sacrebleu's default
RIBES_ALPHA, RIBES_BETA = 0.25, 0.1  # the exponents of RIBES's own script


class Score(NamedTuple):
    """A score and the signature that makes it reproducible.

    Fields:
        score: float, 0 to 100.
        signature: str. sacrebleu's, or one in the same format.
    """

    score: float
    signature: str


class Comparison(NamedTuple):
    """A comparison of a system with a baseline.

    Fields:
        score, baseline: float, 0 to 100. The scores of the system and of the baseline.
        ci, baseline_ci: float. Half the width of the 95 % confidence interval of each score.
        p_value: float in (0, 1]. Probability that chance alone makes a difference at least as
            large, of either sign.
        signature: str. sacrebleu's signature, with the number of trials for the p-value ("ar"),
            the number of resamples for the intervals ("bs") and the seed.
    """

    score: float
    baseline: float
    ci: float
    baseline_ci: float
    p_value: float
    signature: str


class MeanDifference(NamedTuple):
    """The difference of a system's mean BLEU from a baseline's, over seeds of each.

    Fields:
        difference: float.
        low, high: float. The ends of the 95 % confidence interval of the difference.
    """

    difference: float
    low: float
    high: float


def tokenised_bleu(
    hypotheses: Sequence[str], references: Sequence[str], lowercase: bool = False
) -> Score:
    """BLEU of tokenised lines, equal to multi-bleu.perl of Moses to two decimals.

    Lines are split at every Unicode space; multi-bleu.perl splits them only at ASCII spaces. The
    output of Moses's tokeniser contains only ASCII spaces, so both split it into the same tokens.
    With `lowercase`, all letters are lower-cased; `multi-bleu.perl -lc` lower-cases only ASCII.

    Raises:
        ValueError: if the numbers of lines differ, or there are no lines.
    """
    return _score("bleu", hypotheses, references, lowercase)


def smoothed_bleu(hypotheses: Sequence[str], references: Sequence[str]) -> Score:
    """Mean BLEU of tokenised sentences, with 1 added to the counts of 2-grams and longer n-grams.

    Source: Lin and Och (2004), "ORANGE", section 4: BLEUS.

    Raises:
        ValueError: if the numbers of lines differ, or there are no lines.
    """
    _check_lines(hypotheses, references)
    metric = BLEU(tokenize="none", smooth_method="add-k", smooth_value=1.0, force=True)
    scores = [
        # Not sacrebleu's `sentence_score`, which warns about the smoothing at every call.
        metric.corpus_score([ours], [[theirs]]).score
        for ours, theirs in zip(hypotheses, references, strict=True)
    ]
    return Score(sum(scores) / len(scores), str(metric.get_signature()))


def corpus_scores(
    hypotheses: FormedLines, references: FormedLines, lowercase: bool = False
) -> dict[str, Score]:
    """BLEU and chrF of the same lines, each computed from the form of text that it is meant for.

    Args:
        hypotheses, references: `FormedLines`.
        lowercase: bool. Whether to ignore case.

    Returns:
        bleu: `tokenised_bleu` of the tokenised lines.
        standard_bleu: sacrebleu's default BLEU of the readable lines, which it tokenises (13a; in
            languages written without spaces, zh or char).
        chrf: chrF2 of the readable lines; spaces do not count.

    Raises:
        ValueError: if the numbers of lines differ, or there are no lines.
    """
    tokeniser = references.form.standard_tokeniser
    return {
        name: _score(name, formed(hypotheses), formed(references), lowercase, tokeniser)
        for name, formed in FORMS.items()
    }


def ribes(hypotheses: FormedLines, references: FormedLines, lowercase: bool = False) -> Score:
    """RIBES of tokenised lines: a score based on word order.

    Source: Isozaki et al. (2010), as implemented in NLTK. The mean over sentences, 0 to 100.

    Raises:
        ValueError: if the numbers of lines differ, there are no lines, or a line has more than
            2,000 tokens.
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


def compare_systems(
    hypotheses: FormedLines,
    baseline: FormedLines,
    references: FormedLines,
    lowercase: bool = False,
) -> dict[str, Comparison]:
    """Compares a system with a baseline by each score of `corpus_scores`.

    Source: intervals by bootstrap resampling (Koehn, 2004), p-values by approximate randomisation
    (Riezler and Maxwell, 2005), both as implemented in sacrebleu, with its default numbers of
    resamples and trials and its default seed (the environment variable SACREBLEU_SEED sets another,
    above 0). The p-values of sacrebleu's bootstrap are not used: they are far too small for systems
    that hardly differ.

    Raises:
        ValueError: if the numbers of lines differ, or there are no lines.
    """
    for lines in (hypotheses, baseline):
        _check_lines(lines, references)
    comparisons = {}
    for name, formed in FORMS.items():
        systems: Any = [("baseline", formed(baseline)), ("system", formed(hypotheses))]
        truth = [formed(references)]
        metrics = {name: _metric(name, lowercase, references.form.standard_tokeniser)}
        test = PairedTest(systems, metrics, truth, "ar", n_ar_confidence=RESAMPLES)
        signatures, results = test()
        (key,) = signatures  # sacrebleu's name for the metric, the same for both kinds of BLEU
        found: Any = results[key]
        theirs, ours = found
        # sacrebleu does not count trials whose difference equals the observed one. If the systems'
        # n-gram counts differ in k lines, two of the 2^k possible trials have this difference:
        # those that exchange none or all of the k lines. So the p-value is at least 2 / 2^k.
        counts = (
            metrics[name]._extract_corpus_statistics(lines, [truth[0]]) for _, lines in systems
        )
        num_other = sum(a != b for a, b in zip(*counts, strict=True))
        least = 1.0 if ours.score == theirs.score else 2.0 ** (1 - num_other)
        comparisons[name] = Comparison(
            score=float(ours.score),
            baseline=float(theirs.score),
            ci=float(ours.ci),
            baseline_ci=float(theirs.ci),
            p_value=max(float(ours.p_value), least),
            signature=str(signatures[key]),
        )
    return comparisons


def compare_means(
    systems: Sequence[FormedLines],
    baselines: Sequence[FormedLines],
    references: FormedLines,
    lowercase: bool = False,
) -> MeanDifference:
    """Compares the mean tokenised BLEU of a model's seeds with that of a baseline's seeds.

    Source: bootstrap resampling (Koehn, 2004). Each resample has the same lines of all systems, so
    the interval covers the choice of the test set, but not that of the seeds.

    Args:
        systems: translations by each seed of the model.
        baselines: translations by each seed of the baseline.
        references: the references of all.
        lowercase: whether case is ignored.

    Raises:
        ValueError: if the numbers of lines differ, or there are no lines.
    """
    metric: Any = _metric("bleu", lowercase, references.form.standard_tokeniser)
    formed = FORMS["bleu"]
    for lines in (*systems, *baselines):
        _check_lines(lines, references)
    counts = [  # of n-grams, [system, line, count]
        metric._extract_corpus_statistics(formed(lines), [formed(references)])
        for lines in (*systems, *baselines)
    ]
    size = len(references)
    drawn = np.random.default_rng(0).multinomial(size, np.full(size, 1 / size), RESAMPLES)
    draws = np.concatenate([np.ones((1, size), int), drawn])  # first, all lines once
    totals = np.einsum("rl,slc->rsc", draws, np.array(counts))
    scores = [[metric._compute_score_from_stats(list(one)).score for one in row] for row in totals]
    ours, theirs = np.split(np.array(scores), [len(systems)], axis=1)
    difference, *resampled = ours.mean(axis=1) - theirs.mean(axis=1)
    return MeanDifference(float(difference), *map(float, np.percentile(resampled, (2.5, 97.5))))


def _score(
    name: str,
    hypotheses: Sequence[str],
    references: Sequence[str],
    lowercase: bool,
    tokeniser: str = "13a",
) -> Score:
    _check_lines(hypotheses, references)
    metric = _metric(name, lowercase, tokeniser)
    score = metric.corpus_score(list(hypotheses), [list(references)])
    return Score(score.score, str(metric.get_signature()))


def _metric(name: str, lowercase: bool, tokeniser: str) -> Any:
    """A new sacrebleu metric; `force` silences the warning that lines look tokenised."""
    if name == "bleu":
        return BLEU(lowercase, force=True, tokenize="none", smooth_method="none")
    if name == "standard_bleu":
        return BLEU(lowercase, force=True, tokenize=tokeniser)
    return CHRF(lowercase=lowercase)


def _check_lines(hypotheses: Sized, references: Sized) -> None:
    if len(hypotheses) != len(references):
        raise ValueError(
            f"expected as many references as hypotheses, {len(hypotheses)}; got {len(references)}"
        )
    if not len(references):
        raise ValueError("expected at least one reference; got none")


def are_exact(
    hypotheses: Sequence[str], references: Sequence[str], lowercase: bool = False
) -> list[bool]:
    """Whether each line equals its reference, if wanted without regard to case."""
    pairs = zip(hypotheses, references, strict=True)
    return [a.lower() == b.lower() if lowercase else a == b for a, b in pairs]


def bleu_by_length(
    hypotheses: Sequence[str],
    references: Sequence[str],
    exact: Sequence[bool],
    num_groups: int = 5,
    lowercase: bool = False,
) -> list[dict[str, float]]:
    """BLEU by reference length, in groups with about the same number of lines.

    Lines with references of equal length are in the same group. Lines shorter than four tokens have
    no 4-grams: a group with only such lines scores 0.

    Args:
        hypotheses, references: tokenised lines.
        exact: whether each line equals its reference; see `are_exact`.
        num_groups: int > 0.
        lowercase: bool. Whether to ignore case.

    Returns:
        For each group, the `shortest` and `longest` reference in tokens, the number of `lines`,
        `bleu`, and `exact`, the share of exact lines.
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
        groups.append(
            {
                "shortest": lengths[chosen[0]],
                "longest": lengths[chosen[-1]],
                "lines": len(chosen),
                "bleu": tokenised_bleu(ours, theirs, lowercase).score,
                "exact": sum(exact[i] for i in chosen) / len(chosen),
            }
        )
    return groups
