"""The findings of Shu and Nakayama (2017) compared with ours."""

from collections.abc import Sequence

from experiments.reproduction.claims import (
    IF_LONG,
    MARGIN,
    OR_SHORT,
    Claim,
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

MOST_COVERED = 0.9  # share of the source above which a window restricts nothing


def claims(results: Results, corpora: Sequence[str]) -> list[Claim]:
    """For each corpus: flexible and local attention keep the quality, and the window narrows."""
    groups = by_corpus(results)
    found = []
    for name in corpora:
        by_label = {result["label"]: result for result in groups.get(name, [])}
        attentions = [
            label for label in ("flexible", "local") if label in PAPER[CORPORA[name].paper]
        ]
        found += [_quality(CORPORA[name], by_label, attention) for attention in attentions]
        found.append(_window(CORPORA[name], by_label))
    return found


def _quality(corpus: Corpus, by_label: dict[str, Result], attention: str) -> Claim:
    paper = PAPER[corpus.paper]
    claim = Claim(
        f"{attention} is no worse than global, {corpus.short}",
        f"{paper[attention][1]:.2f}; global {paper['global'][1]:.2f}",
        f"Reproduced if {attention} is above global in test BLEU; not reproduced if it is more "
        f"than {2 * MARGIN:g} BLEU below ({MARGIN:g} as the bound, {MARGIN:g} for chance with one "
        f"seed); otherwise undecided. {IF_LONG}"
        + (
            f" Also undecided if the window has more than {100 * MOST_COVERED:g} % of the source. "
            "By this rule, the paper's own English-Japanese row is undecided too."
            if attention == "local"
            else ""
        ),
    )
    rows = [by_label[label] for label in (attention, "global") if label in by_label]
    if len(rows) < 2:
        return claim.incomplete(len(rows), 2)
    (ours, other), (window, full) = (
        [measured(row, corpus.test)[name] for row in rows] for name in ("bleu", "window")
    )
    training = load_preset(f"flexible_{corpus.paper}_{attention}").training
    verdict = from_gap([ours - other], -MARGIN, pairs=1)
    verdict = if_long(verdict, rows, training.num_updates)
    if attention == "local" and window > MOST_COVERED * full:
        verdict = "undecided"
    return claim.judged(f"{ours:.2f}; global {other:.2f}", verdict, made_by(rows))


def _window(corpus: Corpus, by_label: dict[str, Result]) -> Claim:
    paper = PAPER[corpus.paper]
    kept = paper["tuned"][0] / paper["global"][0]
    claim = Claim(
        f"tuned windows are narrow, {corpus.short}",
        f"{paper['global'][0]:.1f} to {paper['tuned'][0]:.1f}, {kept - 1:.0%}",
        "The threshold is that with the smallest window whose validation BLEU of tokenised text "
        f"is at most {LOSS:g} below that of the model before fine-tuning without a threshold. With "
        "it, the tuned model scores a share of the full window. Reproduced if this share is at "
        "most 0.1 above the paper's, partly if it is at most 0.8, otherwise not. Undecided if the "
        f"tuned model is that far below even without a threshold. {OR_SHORT}",
    )
    if not {"flexible", "tuned"} <= by_label.keys():  # both choose the threshold
        return claim
    before, tuned = by_label["flexible"], by_label["tuned"]
    full = measured(tuned, corpus.test)["window"]
    ours = measured(tuned, corpus.test, tuned[THRESHOLD])["window"]
    verdict = from_cases([ours <= (kept + 0.1) * full, ours <= 0.8 * full])
    a_paper_epoch = load_preset(f"flexible_{corpus.paper}_flexible").training.decay_every
    verdict = unless_short(verdict, [tuned], a_paper_epoch)
    if tuned[THRESHOLD] is None:
        bleu = [measured(row, "valid")["bleu"] for row in (before, tuned)]
        verdict = "undecided" if bleu[0] - bleu[1] > LOSS else verdict
    said = f"{full:.1f} to {ours:.1f}, {ours / full - 1:.0%}"
    return claim.judged(said, verdict, made_by([tuned]))
