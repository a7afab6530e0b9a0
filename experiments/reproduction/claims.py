"""Claims: findings of the papers compared with ours, for the scoreboard."""

from collections import Counter
from collections.abc import Sequence
from typing import Literal, NamedTuple

from experiments.reproduction.results import Result, Results

Verdict = Literal["reproduced", "partly", "not", "contradicted", "not run here", "not judged yet"]
SAME = 1.0  # BLEU within which results count as equal; two seeds of a model differ nearly as much


class Claim(NamedTuple):
    """One finding of a paper, with our figures and a verdict.

    Fields:
        what: the finding.
        paper: the paper's figures.
        here: our figures.
        verdict: the verdict, by a rule in the study of the claim.
        made: updates and seeds behind our figures, or how they were made.
    """

    what: str
    paper: str
    here: str = ""
    verdict: Verdict = "not run here"
    made: str = ""


def from_cases(holds: Sequence[bool]) -> Verdict:
    """Returns "reproduced" if a finding holds in every case, "partly" if in some, else "not"."""
    return "reproduced" if all(holds) else "partly" if any(holds) else "not"


def span(values: Sequence[float], form: str = ".2f") -> str:
    """The range of values as text: least to most."""
    low, high = (format(value, form) for value in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"


def several(values: Sequence[float], form: str = ".1f") -> str:
    """Values as text, in their order."""
    return ", ".join(format(value, form) for value in values)


def made_by(results: Results) -> str:
    """The most updates of results, and the number of seeds of each model, as text."""
    updates = [result["configuration"]["training"]["num_updates"] for result in results]
    models = Counter(result["name"].partition("_seed")[0] for result in results)
    return f"{span(updates, ',')}; {span(list(models.values()), 'd')}"


def timed_at(found: Result) -> str:
    """The text in place of updates and seeds if untrained models were timed: the commit."""
    return f"timed, {found['commit'].rstrip('+')[:7]}"


def by_eye(what: str, paper: str, results: Results, judged: Verdict) -> Claim:
    """A claim about a picture, judged by a person instead of recorded figures.

    Args:
        what, paper: see `Claim`.
        results: results of the rows in the picture; if empty, the verdict is "not run here".
        judged: the person's verdict.
    """
    if not results:
        return Claim(what, paper)
    return Claim(what, paper, "judged by eye", judged, made_by(results))
