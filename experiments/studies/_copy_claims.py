"""The copy task: the figures of Britz et al. (2017), and their findings compared with ours."""

from collections.abc import Mapping, Sequence

from experiments.reproduction.claims import (
    FEW_UPDATES,
    IF_LONG,
    MARGIN,
    Claim,
    from_cases,
    if_long,
    is_short,
    made_by,
    saves_half,
    several,
    span,
    timed_at,
    unless_short,
)
from experiments.reproduction.pages import markdown_table, prose, table_label
from experiments.reproduction.results import Result, Results
from seq2seq_memattn.presets.copy_task import ATTENTIONS, LENGTHS

# The paper's BLEU and decoding seconds, by length and attention.
PAPER = {
    20: {
        "none": (99.93, 2.03),
        "k1": (99.52, 2.12),
        "k4": (99.56, 2.25),
        "k16": (99.56, 2.21),
        "k32": (99.57, 2.59),
        "k64": (99.75, 2.86),
        "bahdanau": (99.98, 2.86),
    },
    50: {
        "none": (97.37, 3.90),
        "k1": (98.86, 4.33),
        "k4": (99.95, 4.48),
        "k16": (99.96, 4.58),
        "k32": (99.96, 5.35),
        "k64": (99.97, 5.84),
        "bahdanau": (99.94, 6.46),
    },
    100: {
        "none": (73.99, 6.33),
        "k1": (87.42, 7.32),
        "k4": (99.81, 7.47),
        "k16": (99.97, 7.50),
        "k32": (99.99, 7.65),
        "k64": (100.00, 7.77),
        "bahdanau": (100.00, 11.00),
    },
    200: {
        "none": (32.64, 9.10),
        "k1": (44.22, 9.30),
        "k4": (98.54, 9.49),
        "k16": (99.98, 9.53),
        "k32": (100.00, 9.59),
        "k64": (100.00, 9.78),
        "bahdanau": (100.00, 14.28),
    },
}
PAPER_UPDATES = 200_000
WIDE = ("k16", "k32", "k64")
LONGER = LENGTHS[1:]  # lengths at which K = 1 is ahead of no attention in the paper


def paper_seconds() -> dict[int, dict[str, float]]:
    """The paper's decoding seconds by length and attention."""
    return {
        length: {ATTENTIONS[name]: seconds for name, (_, seconds) in figures.items()}
        for length, figures in PAPER.items()
    }


def claims(found: Results) -> list[Claim]:
    """The claims of Table 1: about copies, judged by our rows, and about decoding times."""
    *short, longest = LENGTHS
    return [
        _copies(f"K >= 16, L <= {short[-1]}", [(n, k) for n in short for k in WIDE], found),
        _copies(f"K >= 16, L = {longest}", [(longest, name) for name in WIDE], found),
        _copies("K = 4, every L", [(length, "k4") for length in LENGTHS], found),
        _copies("Att, every L", [(length, "bahdanau") for length in LENGTHS], found),
        _without_attention(found),
        _one_slot(found),
        _times({row["length"]: row["timed"] for row in found if "timed" in row}),
    ]


def _copies(what: str, cells: Sequence[tuple[int, str]], found: Results) -> Claim:
    paper = [PAPER[length][name][0] for length, name in cells]
    claim = Claim(
        f"copies, {what}",
        span(paper),
        f"Reproduced if every row is at most {MARGIN:g} BLEU below the paper's, partly if some "
        f"with L > {LENGTHS[0]} are (at L = {LENGTHS[0]}, a model without attention is, too); "
        f"otherwise not, or undecided after {FEW_UPDATES}.",
    )
    of_cells = [_row(found, length, name) for length, name in cells]
    pairs = [(row, theirs) for row, theirs in zip(of_cells, paper, strict=True) if row]
    rows = [row for row, _ in pairs]
    holds = [row["bleu"] >= theirs - MARGIN for row, theirs in pairs]
    if not all(holds):  # what holds at the smallest L alone says nothing
        holds = [held and row["length"] > LENGTHS[0] for row, held in zip(rows, holds, strict=True)]
    if len(rows) < len(cells):
        if all(holds) or not any(holds):
            return claim.incomplete(len(rows), len(cells))
        # Some rows agree with the paper, some do not, whatever is missing.
        here = ", ".join(f"{row['bleu']:.2f}" if row else "not run" for row in of_cells)
        return claim.judged(here, "partly", made_by(rows))
    verdict = unless_short(from_cases(holds), rows, PAPER_UPDATES)
    return claim.judged(span([row["bleu"] for row in rows]), verdict, made_by(rows))


def _without_attention(found: Results) -> Claim:
    claim = Claim(
        "no attention fails as L grows",
        several([PAPER[length]["none"][0] for length in LENGTHS]),
        f"Reproduced if BLEU falls by more than {MARGIN:g} from each L to the next, partly if it "
        "does so from some L, otherwise not. Low scores after "
        f"{FEW_UPDATES} leave this undecided.",
    )
    rows = [row for length in LENGTHS if (row := _row(found, length, "none"))]
    if len(rows) < len(LENGTHS):
        return claim.incomplete(len(rows), len(LENGTHS))
    bleu = [row["bleu"] for row in rows]
    falls = [longer < shorter - MARGIN for shorter, longer in zip(bleu, bleu[1:], strict=False)]
    verdict = from_cases(falls)
    if any(falls) and is_short(rows, PAPER_UPDATES):
        verdict = "undecided"
    return claim.judged(several(bleu), verdict, made_by(rows))


def _one_slot(found: Results) -> Claim:
    gains = [PAPER[n]["k1"][0] - PAPER[n]["none"][0] for n in LONGER]
    claim = Claim(
        f"K = 1 is ahead of no attention, L >= {LONGER[0]}", several(gains, "+.1f"), AHEAD_RULE
    )
    pairs = [(_row(found, n, "k1"), _row(found, n, "none")) for n in LONGER]
    return judge_ahead(claim, pairs)


AHEAD_RULE = (
    f"Reproduced if K = 1 is ahead by more than {MARGIN:g} BLEU at every L, partly if at some; "
    f"contradicted if K = 1 is behind by more than {MARGIN:g} everywhere; otherwise not. {IF_LONG}"
)


def judge_ahead(claim: Claim, pairs: Sequence[tuple[Result | None, Result | None]]) -> Claim:
    """Judges by `AHEAD_RULE` in how many of the pairs the first row is ahead of the second."""
    rows = [row for pair in pairs for row in pair if row]
    if len(rows) < 2 * len(pairs):
        return claim.incomplete(len(rows), 2 * len(pairs))
    gains = [ours["bleu"] - other["bleu"] for ours, other in pairs if ours and other]
    verdict = from_cases([gain > MARGIN for gain in gains])
    if max(gains) < -MARGIN:
        verdict = "contradicted"
    verdict = if_long(verdict, rows, PAPER_UPDATES)
    return claim.judged(several(gains, "+.1f"), verdict, made_by(rows))


def _times(timed: Mapping[int, Result]) -> Claim:
    """Judges the decoding times of K = 64 and Bahdanau's attention on sources of 0 to L tokens.

    Args:
        timed: the content of the file of times, by L.
    """
    paper = [PAPER[n]["k64"][1] / PAPER[n]["bahdanau"][1] for n in LENGTHS]
    claim = Claim(
        "decoding time of K = 64 over Att, by L",
        several(paper, ".2f"),
        f"Two conditions: at every L from {LONGER[0]} on, each repeat of K = 64 is faster than "
        "each of Att, and the ratio of their times falls with L; at "
        f"L = {LONGER[-1]}, the share of Att's time that K = 64 saves is at least half of the "
        "paper's. Reproduced if both hold, partly if one does, otherwise not; but undecided "
        f"instead of partly if the repeats of the two models at L = {LONGER[-1]} overlap.",
    )
    if missing := set(LENGTHS) - set(timed):
        return claim.incomplete(len(LENGTHS) - len(missing), len(LENGTHS))
    found = [time_over(timed[length], "k_memory:64", "bahdanau") for length in LENGTHS]
    ratios = [ratio for ratio in found if ratio is not None]
    if len(ratios) < len(LENGTHS):
        return claim.incomplete(len(ratios), len(LENGTHS))
    _, *longer = ratios
    is_faster = not any(_repeats_overlap(timed[length]) for length in LONGER)
    falls = is_faster and longer == sorted(longer, reverse=True)
    verdict = from_cases([falls, saves_half(ratios[-1], paper[-1])])
    if verdict == "partly" and _repeats_overlap(timed[LENGTHS[-1]]):
        verdict = "undecided"
    return claim.judged(
        several(ratios, ".2f"), verdict, timed_at(*(timed[length] for length in LENGTHS))
    )


def _repeats_overlap(timed: Result) -> bool:
    """Whether a repeat of K = 64 took as long as one of Bahdanau's attention."""
    repeats = {row["attention"]: row["all_seconds"] for row in timed["rows"]}
    return bool(max(repeats["k_memory:64"]) >= min(repeats["bahdanau"]))


def time_over(timed: Result, attention: str, other: str) -> float | None:
    """The ratio of two attentions' seconds in a file of times; None if one is missing."""
    seconds = {row["attention"]: row["seconds"] for row in timed["rows"]}
    return seconds[attention] / seconds[other] if {attention, other} <= seconds.keys() else None


def _row(found: Results, length: int, name: str) -> Result | None:
    return next((row for row in found if row["name"] == f"copy_{length}_{name}"), None)


def summary(found: Results) -> str:
    """A table of the BLEU of every row beside the paper's."""
    header = ["model", *(part for n in LENGTHS for part in (f"L = {n}, paper", "here"))]
    lines = []
    for name, attention in ATTENTIONS.items():
        cells = [table_label(attention)]
        for length in LENGTHS:
            row = _row(found, length, name)
            cells += [f"{PAPER[length][name][0]:.2f}", f"{row['bleu']:.2f}" if row else "not run"]
        lines.append(cells)
    updates = ", ".join(
        f"{max(updates):,} at L = {length}"
        for length in LENGTHS
        if (updates := [r["training"]["best_update"] for r in found if r["length"] == length])
    )
    said = prose(
        f"BLEU, one seed each. The paper trains for {PAPER_UPDATES:,} updates; here the best "
        f"validation came after at most {updates}. [Decoding speed](decoding.md) has the times."
    )
    return f"{said}\n\n{markdown_table(header, lines)}"
