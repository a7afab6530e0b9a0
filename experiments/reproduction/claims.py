"""Claims: findings of the papers compared with ours, for the scoreboard."""

import math
import statistics
from collections import Counter
from collections.abc import Sequence
from typing import Literal, NamedTuple

from experiments.reproduction.results import Result, Results

Verdict = Literal[
    "reproduced",
    "partly",
    "not",
    "contradicted",
    "undecided",
    "not run here",
]
# BLEU by which two trainings must differ to count as different. Seeds of one row differ by up to
# 0.9 test BLEU; a test checks that the margin is larger.
MARGIN = 1.0
SHORT = 0.1  # share of the paper's updates below which a low score decides nothing
FEW_UPDATES = f"less than {100 * SHORT:g} % of the paper's updates"
OR_SHORT = f"After {FEW_UPDATES}, undecided instead of refuted."
IF_LONG = f"Undecided after {FEW_UPDATES}."


class Claim(NamedTuple):
    """One finding of a paper, with our figures and a verdict.

    Fields:
        what: the finding.
        paper: the paper's figures.
        rule: the rule of the verdict, for the page. Applied to the paper's figures, it must give
            "reproduced"; a test checks the rules that judge figures of the paper.
        here: our figures.
        verdict: the verdict.
        made: updates and seeds behind our figures, or how they were made.
    """

    what: str
    paper: str
    rule: str
    here: str = ""
    verdict: Verdict = "not run here"
    made: str = ""

    def judged(self, here: str, verdict: Verdict, made: str) -> "Claim":
        """Returns the claim with our figures and the verdict."""
        return self._replace(here=here, verdict=verdict, made=made)

    def incomplete(self, there: int, needed: int) -> "Claim":
        """Returns the claim without a verdict, because results that the rule needs are missing.

        Args:
            there: int >= 0. The number of results that exist.
            needed: int > there. The number that the rule needs.
        """
        return self._replace(here=f"{needed - there} of {needed} missing" if there else "")


def from_cases(holds: Sequence[bool]) -> Verdict:
    """The verdict on a finding that should hold in every case.

    Returns:
        "reproduced" if it holds in every case, "partly" if in some, otherwise "not".
    """
    if any(holds):
        return "reproduced" if all(holds) else "partly"
    return "not"


def from_gains(gains: Sequence[float], pairs: int) -> Verdict:
    """The verdict on a finding that one model is ahead of another: their mean gain decides.

    Args:
        gains: differences in BLEU, one for each comparison.
        pairs: int > 0. The pairs of trainings behind the gains.

    Returns:
        "reproduced" if the mean is above `MARGIN` over the root of `pairs`, "contradicted" if it is
        as far below 0, otherwise "undecided".
    """
    mean, margin = statistics.mean(gains), MARGIN / math.sqrt(pairs)
    return "reproduced" if mean > margin else "contradicted" if mean < -margin else "undecided"


def from_gap(gains: Sequence[float], bound: float, pairs: int) -> Verdict:
    """The verdict on a finding that one model is not far behind another; see `from_gains`.

    Args:
        gains, pairs: see `from_gains`.
        bound: the lowest gain that the finding allows.

    Returns:
        "reproduced" if the mean is as far above the bound as `from_gains` asks, "not" if it is as
        far below, otherwise "undecided".
    """
    verdict = from_gains([gain - bound for gain in gains], pairs)
    return "not" if verdict == "contradicted" else verdict


def saves_half(ratio: float, paper: float) -> bool:
    """Whether a ratio of times saves at least half as much time as the paper's ratio."""
    return 1.0 - ratio >= 0.5 * (1.0 - paper)


def unless_short(verdict: Verdict, results: Results, paper_updates: int) -> Verdict:
    """The verdict, or "undecided" if a short training cannot refute the finding."""
    refutes = verdict in ("not", "contradicted")
    return "undecided" if refutes and is_short(results, paper_updates) else verdict


def if_long(verdict: Verdict, results: Results, paper_updates: int) -> Verdict:
    """The verdict on a difference between our trainings, or "undecided" if they were short.

    While models still improve, their difference changes: a lead shows as little as a deficit.
    """
    return "undecided" if is_short(results, paper_updates) else verdict


def is_short(results: Results, paper_updates: int) -> bool:
    """Whether one of the results may have had too few updates to reach the paper's score."""
    return min(_updates(results)) < SHORT * paper_updates


def span(values: Sequence[float], form: str = ".2f") -> str:
    """The range of values as text: least to most."""
    low, high = (format(value, form) for value in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"


def several(values: Sequence[float], form: str = ".1f") -> str:
    """Values as text, in their order."""
    return ", ".join(format(value, form) for value in values)


def made_by(results: Results) -> str:
    """The limit on the number of updates, and the number of seeds of each model, as text.

    For fine-tuned models, these are additional updates.
    """
    models = Counter(result["name"].partition("_seed")[0] for result in results)
    more = " more" if all(result.get("init_from") for result in results) else ""
    return f"{span(_updates(results), ',')}{more}; {span(list(models.values()), 'd')}"


def _updates(results: Results) -> list[int]:
    return [result["configuration"]["training"]["num_updates"] for result in results]


def timed_at(*found: Result) -> str:
    """The text in place of updates and seeds if untrained models were timed: the commits.

    A plus sign at the end of a commit stands for changed files.
    """
    commits = dict.fromkeys(result["commit"] for result in found)
    return f"timed, {', '.join(one[:7] + '+' * one.endswith('+') for one in commits)}"


def by_eye(what: str, paper: str, results: Results, judged: Verdict) -> Claim:
    """A claim about a picture, judged by a person instead of recorded figures.

    Args:
        what, paper: see `Claim`.
        results: results of the rows in the picture; if empty, the verdict is "not run here".
        judged: the person's verdict.
    """
    claim = Claim(
        what, paper, "A person compares the figure with the paper's; the study page has the reason."
    )
    return claim.judged("judged by eye", judged, made_by(results)) if results else claim
