"""The copy task: the figures of Britz et al. (2017), and their findings compared with ours."""

from collections.abc import Sequence

from experiments.reproduction.claims import (
    SAME,
    Claim,
    from_cases,
    made_by,
    several,
    span,
    timed_at,
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
    """The claims of Table 1 about copies and decoding time, judged by our rows and times."""
    *short, longest = LENGTHS
    return [
        _copies(f"K >= 16, L <= {short[-1]}", [(n, k) for n in short for k in WIDE], found),
        _copies(f"K >= 16, L = {longest}", [(longest, name) for name in WIDE], found),
        _copies("K = 4, every L", [(length, "k4") for length in LENGTHS], found),
        _copies("Att, every L", [(length, "bahdanau") for length in LENGTHS], found),
        _without_attention(found),
        _one_slot(found),
        _times(found),
    ]


def _copies(what: str, cells: Sequence[tuple[int, str]], found: Results) -> Claim:
    """Reproduced if each row is within `SAME` BLEU of the paper's; a missing row counts as not."""
    what, paper = f"copies, {what}", span([PAPER[length][name][0] for length, name in cells])
    rows = [row for length, name in cells if (row := _row(found, length, name))]
    if not rows:
        return Claim(what, paper)
    missing = len(cells) - len(rows)
    holds = [row["bleu"] >= row["paper"]["bleu"] - SAME for row in rows]
    verdict = from_cases([*holds, *[False] * missing])
    here = span([row["bleu"] for row in rows]) + (f", {missing} not run" if missing else "")
    return Claim(what, paper, here, verdict, made_by(rows))


def _without_attention(found: Results) -> Claim:
    """Reproduced if BLEU falls with each longer L."""
    what = "no attention fails as L grows"
    paper = several([PAPER[length]["none"][0] for length in LENGTHS])
    rows = [row for length in LENGTHS if (row := _row(found, length, "none"))]
    if len(rows) < len(LENGTHS):
        return Claim(what, paper)
    bleu = [row["bleu"] for row in rows]
    is_falling = [longer < shorter for shorter, longer in zip(bleu, bleu[1:], strict=False)]
    return Claim(what, paper, several(bleu), from_cases(is_falling), made_by(rows))


def _one_slot(found: Results) -> Claim:
    """Reproduced if K = 1 is ahead of no attention at every L, contradicted if at none."""
    what = f"K = 1 is ahead of no attention, L >= {LONGER[0]}"
    paper = several([PAPER[n]["k1"][0] - PAPER[n]["none"][0] for n in LONGER], "+.1f")
    pairs = [[_row(found, length, name) for name in ("k1", "none")] for length in LONGER]
    rows = [row for pair in pairs for row in pair if row]
    if len(rows) < 2 * len(pairs):
        return Claim(what, paper)
    gains = [one["bleu"] - none["bleu"] for one, none in pairs if one and none]
    verdict = from_cases([gain > 0.0 for gain in gains])
    verdict = "contradicted" if verdict == "not" else verdict
    return Claim(what, paper, several(gains, "+.1f"), verdict, made_by(rows))


def _times(found: Results) -> Claim:
    """Reproduced if K = 64 is faster from L = 50 on, ever more so; partly if only at L = 200."""
    what = "decoding time of K = 64 over Att, by L"
    paper = several([PAPER[n]["k64"][1] / PAPER[n]["bahdanau"][1] for n in LENGTHS], ".2f")
    timed = {result["length"]: result["timed"] for result in found if "timed" in result}
    if not set(LENGTHS) <= set(timed):
        return Claim(what, paper)
    ratios = [time_over(timed[length], "k_memory:64", "bahdanau") or 0.0 for length in LENGTHS]
    _, *longer = ratios
    falls = max(longer) < 1.0 and longer == sorted(longer, reverse=True)
    verdict = from_cases([falls, ratios[-1] < 1.0])
    return Claim(what, paper, several(ratios, ".2f"), verdict, timed_at(timed[LENGTHS[-1]]))


def time_over(timed: Result, attention: str, other: str) -> float | None:
    """The ratio of two attentions' seconds in a file of times; None if one is missing."""
    seconds = {row["attention"]: row["seconds"] for row in timed["rows"]}
    return seconds[attention] / seconds[other] if {attention, other} <= seconds.keys() else None


def _row(found: Results, length: int, name: str) -> Result | None:
    return next((row for row in found if row["name"] == f"copy_{length}_{name}"), None)


def summary(found: Results) -> str:
    """Two tables: BLEU of every row beside the paper's, and decoding times relative to Att."""
    header = ["model", *(part for n in LENGTHS for part in (f"L = {n}, paper", "here"))]
    bleu, times = [], []
    for name, attention in ATTENTIONS.items():
        scores, ratios = [table_label(attention)], [table_label(attention)]
        for length in LENGTHS:
            paper, row = PAPER[length], _row(found, length, name)
            scores += [f"{paper[name][0]:.2f}", f"{row['bleu']:.2f}" if row else "not run"]
            timed: Result = next(
                (r["timed"] for r in found if r["length"] == length and "timed" in r), {}
            )
            ratio = time_over(timed, attention, "bahdanau") if timed else None
            there = paper[name][1] / paper["bahdanau"][1]
            ratios += [f"{there:.2f}", f"{ratio:.2f}" if ratio else "not run"]
        bleu.append(scores)
        times.append(ratios)
    updates = ", ".join(
        f"{max(updates):,} at L = {length}"
        for length in LENGTHS
        if (updates := [r["training"]["best_update"] for r in found if r["length"] == length])
    )
    said = prose(
        f"BLEU, one seed each. The paper trains for {PAPER_UPDATES:,} updates; here the best "
        f"validation came after at most {updates}."
    )
    return "\n\n".join(
        [
            said,
            markdown_table(header, bleu),
            "Decoding time over that of Att, sources of 0 to L symbols, batches of 128:",
            markdown_table(header, times),
        ]
    )
