"""The findings of Shu and Nakayama (2017) compared with ours."""

from collections.abc import Sequence

from experiments.reproduction.claims import (
    IF_LONG,
    MARGIN,
    OR_SHORT,
    Claim,
    Verdict,
    from_cases,
    from_gap,
    if_long,
    made_by,
    unless_short,
)
from experiments.reproduction.results import Result, Results
from experiments.studies._flexible import (
    CORPORA,
    LOSS,
    PAPER,
    THRESHOLD,
    Corpus,
    by_corpus,
    measured,
)
from seq2seq_memattn.presets.load import load_preset


def claims(results: Results, corpora: Sequence[str]) -> list[Claim]:
    """For each corpus: flexible attention keeps the quality, and its window narrows."""
    groups = by_corpus(results)
    found = []
    for name in corpora:
        by_label = {result["label"]: result for result in groups.get(name, [])}
        for claim in (_quality, _window_before_tuning, _window):
            found.append(claim(CORPORA[name], by_label))
    return found


def _quality(corpus: Corpus, by_label: dict[str, Result]) -> Claim:
    paper = PAPER[corpus.paper]
    claim = Claim(
        f"flexible is no worse than global, {corpus.short}",
        f"{paper['flexible'][1]:.2f}; global {paper['global'][1]:.2f}",
        "Reproduced if flexible is above global in test BLEU; not reproduced if it is more than "
        f"{2 * MARGIN:g} BLEU below ({MARGIN:g} as the bound, {MARGIN:g} for chance with one "
        f"seed); otherwise undecided. {IF_LONG}",
    )
    rows = [by_label[label] for label in ("flexible", "global") if label in by_label]
    if len(rows) < 2:
        return claim.incomplete(len(rows), 2)
    ours, other = (measured(row, corpus.test)["bleu"] for row in rows)
    training = load_preset(f"flexible_{corpus.paper}_flexible").training
    verdict = from_gap([ours - other], -MARGIN, pairs=1)
    verdict = if_long(verdict, rows, training.num_updates)
    return claim.judged(f"{ours:.2f}; global {other:.2f}", verdict, made_by(rows))


def _window_before_tuning(corpus: Corpus, by_label: dict[str, Result]) -> Claim:
    paper = PAPER[corpus.paper]
    kept = paper["threshold"][0] / paper["flexible"][0]
    claim = Claim(
        f"windows narrow before tuning, {corpus.short}",
        _shrunk(paper["flexible"][0], paper["threshold"][0]),
        f"Of the thresholds that cost at most {LOSS:g} tokenised validation BLEU, the one with the "
        "smallest window counts. Reproduced if the share of the full window that it leaves is at "
        "most 0.1 above the paper's, partly if it is at most 0.8, "
        f"otherwise not. {OR_SHORT}",
    )
    if "flexible" not in by_label:
        return claim
    row = by_label["flexible"]
    said, verdict = _narrowed(corpus, row, row[THRESHOLD], kept)
    training = load_preset(f"flexible_{corpus.paper}_flexible").training
    verdict = unless_short(verdict, [row], training.num_updates)
    return claim.judged(said, verdict, made_by([row]))


def _narrowed(
    corpus: Corpus, row: Result, threshold: float | None, kept: float
) -> tuple[str, Verdict]:
    """The window of a row without and with a threshold as text, and the verdict on it."""
    full, ours = (measured(row, corpus.test, one)["window"] for one in (None, threshold))
    verdict = from_cases([ours <= (kept + 0.1) * full, ours <= 0.8 * full])
    return _shrunk(full, ours), verdict


def _shrunk(full: float, left: float) -> str:
    return f"{full:.1f} to {left:.1f}, {left / full - 1:.0%}"


def _window(corpus: Corpus, by_label: dict[str, Result]) -> Claim:
    paper = PAPER[corpus.paper]
    kept = paper["tuned"][0] / paper["global"][0]
    claim = Claim(
        f"tuned windows are narrow, {corpus.short}",
        _shrunk(paper["global"][0], paper["tuned"][0]),
        f"Of the thresholds whose tokenised validation BLEU is at most {LOSS:g} below that of the "
        "model before fine-tuning without a threshold, the one with the smallest window counts. "
        "With it, the tuned model scores a share of the full window. Reproduced if this share is "
        "at most 0.1 above the paper's, partly if it is at most 0.8, otherwise not. Undecided if "
        f"the tuned model is more than {LOSS:g} below even without a threshold. {OR_SHORT}",
    )
    if not {"flexible", "tuned"} <= by_label.keys():  # both choose the threshold
        return claim
    before, tuned = by_label["flexible"], by_label["tuned"]
    said, verdict = _narrowed(corpus, tuned, tuned[THRESHOLD], kept)
    a_paper_epoch = load_preset(f"flexible_{corpus.paper}_flexible").training.decay_every
    verdict = unless_short(verdict, [tuned], a_paper_epoch)
    if tuned[THRESHOLD] is None:
        bleu = [measured(row, "valid")["bleu"] for row in (before, tuned)]
        verdict = "undecided" if bleu[0] - bleu[1] > LOSS else verdict
    return claim.judged(said, verdict, made_by([tuned]))
