"""The findings of Shu and Nakayama (2017) compared with ours."""

from collections.abc import Sequence

from experiments.reproduction.claims import Claim, from_cases, made_by
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


def claims(results: Results, corpora: Sequence[str]) -> list[Claim]:
    """Two claims per corpus: flexible attention keeps the quality, and its window narrows."""
    groups = by_corpus(results)
    found = []
    for name in corpora:
        by_label = {result["label"]: result for result in groups.get(name, [])}
        found += [_quality(CORPORA[name], by_label), _window(CORPORA[name], by_label)]
    return found


def _quality(corpus: Corpus, by_label: dict[str, Result]) -> Claim:
    """Reproduced if flexible has at least the test BLEU of global, partly if within `LOSS`."""
    what, paper = f"flexible is no worse than global, {corpus.short}", PAPER[corpus.paper]
    theirs = f"{paper['flexible'][1]:.2f}; global {paper['global'][1]:.2f}"
    if not {"global", "flexible"} <= by_label.keys():
        return Claim(what, theirs)
    rows = [by_label[label] for label in ("flexible", "global")]
    ours, other = (measured(row, corpus.test)["bleu"] for row in rows)
    verdict = from_cases([ours >= other, ours >= other - LOSS])
    return Claim(what, theirs, f"{ours:.2f}; global {other:.2f}", verdict, made_by(rows))


def _window(corpus: Corpus, by_label: dict[str, Result]) -> Claim:
    """Reproduced if the kept share is at most 0.1 above the paper's, partly if at most 0.8."""
    paper = PAPER[corpus.paper]
    kept = paper["tuned"][0] / paper["global"][0]
    what = f"tuned windows are narrow, {corpus.short}"
    theirs = f"{paper['global'][0]:.1f} to {paper['tuned'][0]:.1f}, {kept - 1:.0%}"
    if not {"flexible", "tuned"} <= by_label.keys():
        return Claim(what, theirs)
    tuned = by_label["tuned"]
    full = measured(tuned, corpus.test)["window"]
    ours = measured(tuned, corpus.test, tuned[THRESHOLD])["window"]
    verdict = from_cases([ours <= (kept + 0.1) * full, ours <= 0.8 * full])
    said = f"{full:.1f} to {ours:.1f}, {ours / full - 1:.0%}"
    return Claim(what, theirs, said, verdict, made_by([tuned]))
