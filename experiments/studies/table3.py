"""Table 3: decoding time of translation.

Britz, Guan and Luong (2017): newstest2015, the validation set of WMT'17 en-de.
"""

from pathlib import Path
from typing import Any

from experiments.reproduction.claims import Claim, from_cases, saves_half, several, timed_at
from experiments.reproduction.jobs import run_command
from experiments.reproduction.pages import markdown_table, table_label
from experiments.reproduction.results import Result, Results, read_json
from experiments.reproduction.rows import DataSource, Scale
from experiments.reproduction.study import Study
from experiments.reproduction.timings import measure_times, origin

PAPER = {"k_memory:32": 26.85, "k_memory:64": 27.13, "bahdanau": 33.28}  # seconds
SPLIT = "valid"  # newstest2015
# The corpus with this validation set, size of its vocabulary, sentences, units of the models.
SIZES: dict[Scale, tuple[str, int, int, int]] = {
    "tiny": ("wmt_news", 400, 8, 8),
    "small": ("wmt_news", 16_000, 2169, 512),
    "full": ("wmt17", 16_000, 2169, 512),
}
TIMES = "decoding.json"
HEADER = (
    *("model", "seconds, paper", "here", "least to most", "over Att, paper", "here", "steps alone"),
    "output layer and selection",
)


def introduction(scale: Scale) -> str:
    """The text of the page before its table."""
    _, pieces, sentences, units = SIZES[scale]
    return (
        f"How long does it take to decode {sentences:,} sentences of newstest2015 en-de, sorted by "
        f"length, with {pieces:,} subwords, {units} units and a beam of 10? Models are untrained "
        "and have the paper's shapes; hypotheses are forced to the lengths of the references. "
        "Times are in seconds, medians of several runs, with the models taking turns; XLA compiles "
        "the search. For the "
        "batch with the longest sources, the parts of a step were also timed one by one. The last "
        "column is the share of output layer and selection in the sum of these times."
    )


def run(study: Study) -> Results:
    """Times each model."""
    corpus, pieces, sentences, units = SIZES[study.scale]
    data = study.data_dir / f"{corpus}_en_de_{pieces}"
    command = (f"data_prep.{corpus}", "--pair=en-de", f"--vocab_size={pieces}")
    source = DataSource(data.name, command, corpus)
    arguments = [
        f"--data_dir={data}",
        f"--split={SPLIT}",
        f"--num_sentences={sentences}",
        f"--units={units}",
        f"--attentions={','.join(PAPER)}",
        "--parts",
    ]
    measure_times(_path(study), arguments, lambda: study.prepare(source, run_command))
    return results(study)


def results(study: Study) -> list[Result]:
    """The times of each model, if they have been measured."""
    if not _path(study).exists():
        return []
    found = read_json(_path(study))
    made = {name: found[name] for name in ("command", "commit", "hardware")}
    return [{**row, **made, "name": row["attention"]} for row in found["rows"]]


def _path(study: Study) -> Path:
    return study.results_dir / TIMES


def claims(found: Results) -> list[Claim]:
    """K-memory decodes faster than Bahdanau's attention."""
    names = ("k_memory:32", "k_memory:64")
    paper = [PAPER[name] / PAPER["bahdanau"] for name in names]
    claim = Claim(
        "decoding time of K = 32, 64 over Att",
        several(paper, ".2f"),
        "Reproduced if, for each K, the share of Att's time that it saves is at least half of the "
        "paper's; partly if this holds for one K; otherwise not.",
    )
    if not found:
        return [claim]
    seconds = {row["attention"]: row["seconds"] for row in found}
    ratios = [seconds[name] / seconds["bahdanau"] for name in names]
    verdict = from_cases([saves_half(*pair) for pair in zip(ratios, paper, strict=True)])
    return [claim.judged(several(ratios, ".2f"), verdict, timed_at(found[0]))]


def tables(found: Results) -> str:
    """The table."""
    (ours,) = (row["seconds"] for row in found if row["attention"] == "bahdanau")
    table = markdown_table(HEADER, [_cells(row, ours) for row in found])
    return f"{table}\n\n{origin(found[0])}\n"


def _cells(row: dict[str, Any], ours: float) -> list[str]:
    paper, cells = PAPER[row["attention"]], row["parts_ms"]["cells and attention"]
    return [
        table_label(row["attention"]),
        f"{paper:.2f}",
        f"{row['seconds']:.2f}",
        f"{min(row['all_seconds']):.2f} to {max(row['all_seconds']):.2f}",
        f"{paper / PAPER['bahdanau']:.2f}",
        f"{row['seconds'] / ours:.2f}",
        f"{row['steps_seconds']:.2f}",
        f"{100 * (1 - cells / sum(row['parts_ms'].values())):.0f} %",
    ]
