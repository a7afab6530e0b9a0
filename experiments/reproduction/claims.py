"""Findings of the papers beside what was found here, as the scoreboard has them."""

from collections import Counter
from collections.abc import Sequence
from typing import Literal, NamedTuple

from experiments.reproduction.results import Result, Results

Verdict = Literal["reproduced", "partly", "not", "contradicted", "not run here", "not judged yet"]
SAME = 1.0  # BLEU; two seeds of a model are nearly as far apart


class Claim(NamedTuple):
    """One finding of a paper.

    Fields:
        what: the finding.
        paper: the paper's figures.
        here: ours.
        verdict: what our figures say of the finding, by a rule of the study that has the claim.
        made: updates and seeds behind our figures, or how they were made.
    """

    what: str
    paper: str
    here: str = ""
    verdict: Verdict = "not run here"
    made: str = ""


def from_cases(holds: Sequence[bool]) -> Verdict:
    """Reproduced if a finding holds in every case, partly if in some."""
    return "reproduced" if all(holds) else "partly" if any(holds) else "not"


def span(values: Sequence[float], form: str = ".2f") -> str:
    """From the least to the most of some values."""
    low, high = (format(value, form) for value in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"


def several(values: Sequence[float], form: str = ".1f") -> str:
    """Values in their order."""
    return ", ".join(format(value, form) for value in values)


def made_by(results: Results) -> str:
    """How many updates results are of at most, and how many seeds of each model."""
    updates = [result["configuration"]["training"]["num_updates"] for result in results]
    models = Counter(result["name"].partition("_seed")[0] for result in results)
    return f"{span(updates, ',')}; {span(list(models.values()), 'd')}"


def timed_at(found: Result) -> str:
    """What stands in place of updates and seeds where untrained models were timed: the commit."""
    return f"timed, {found['commit'].rstrip('+')[:7]}"


def by_eye(what: str, paper: str, results: Results, judged: Verdict) -> Claim:
    """A claim on a picture, of which no figure is recorded.

    Args:
        what, paper: see `Claim`.
        results: of the rows that are drawn; without one the claim was not run here.
        judged: what a person saw.
    """
    if not results:
        return Claim(what, paper)
    return Claim(what, paper, "judged by eye", judged, made_by(results))
