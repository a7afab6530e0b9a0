"""Decoding speed.

How fast each attention decodes. Instead of rows to train, the study has parts to time, each by one
command of `experiments.speed`.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from experiments.benchmarks.step_parts import PARTS as STEP
from experiments.benchmarks.time_plots import draw_step_times, draw_times
from experiments.reproduction.claims import Claim, from_cases, span, timed_at
from experiments.reproduction.pages import markdown_table, prose, table_label
from experiments.reproduction.results import Result, Results, read_json
from experiments.reproduction.rows import Scale
from experiments.reproduction.study import Study
from experiments.reproduction.timings import measure_times, origin
from experiments.studies._copy_claims import paper_seconds

EVERY = (
    "none", "constant", "k_memory:32", "k_memory:64", "linear", "luong_dot", "luong_general",
    "luong_concat", "luong_location", "local_m", "local_p", "flexible", "bahdanau",
)  # fmt: skip
MAIN = ("none", "k_memory:32", "k_memory:64", "linear", "luong_general", "bahdanau")
CONTRASTED = ("none", "k_memory:64", "bahdanau")
ONE_BATCH = "--num_sentences=128"
# The parts that are timed at scale "tiny", one of each kind, and the flags added for it: of a flag
# given twice, the last counts.
TINY_PARTS = ("by_length", "attentions", "growth", "memory", "parts", "single_256_beam_1")
TINY = (
    *("--attentions=none,k_memory:2,bahdanau", "--lengths=3,5", "--num_sentences=4"),
    *("--beam_size=2", "--units=8", "--repeats=1", "--graphs=plain"),
)


class Part(NamedTuple):
    """One measurement and its section of the page.

    Fields:
        name: name of the file.
        label: title of the section.
        arguments: arguments of `experiments.speed`.
        figures: columns of the table, see `FIGURES`.
        note: a sentence above the table, or "".
    """

    name: str
    label: str
    arguments: tuple[str, ...]
    figures: tuple[str, ...]
    note: str = ""


def _of(attentions: Sequence[str]) -> str:
    return f"--attentions={','.join(attentions)}"


def _single(units: int, tokens: int, beam_size: int) -> Part:
    beam = "greedy" if beam_size == 1 else f"a beam of {beam_size}"
    return Part(
        f"single_{units}_beam_{beam_size}",
        f"Single sentences of 20 tokens, {beam}, {units} units, {tokens:,} symbols",
        (
            *(_of(CONTRASTED), "--modes=exact", "--lengths=20", "--batch_size=1"),
            *("--num_sentences=50", f"--beam_size={beam_size}", f"--units={units}"),
            *(f"--vocab_size={tokens}", "--graphs=xla,plain", "--repeats=3", "--parts"),
        ),
        ("p50", "p95", "of Att"),
        '"of Att" compares total times of 50 sentences; p50 and p95 are quantiles over sentences.',
    )


PARTS = (
    Part(
        "by_length",
        "By length of the sources",
        (
            *(_of(MAIN), "--modes=exact,uniform", "--lengths=20,50,100,200"),
            *("--num_sentences=512", "--repeats=3"),
        ),
        ("seconds", "tokens/s", "of No Att", "of Att"),
    ),
    Part(
        "attentions",
        "Every attention",
        (_of(EVERY), "--modes=exact", "--lengths=20,50,100,200,500", ONE_BATCH, "--repeats=3"),
        ("seconds", "ms per step", "of No Att", "of Att"),
    ),
    Part(
        "growth",
        "Time of a step up to 1,000 tokens",
        (
            *(_of((*CONTRASTED, "linear")), "--modes=exact", "--lengths=50,100,200,500,1000"),
            *(ONE_BATCH, "--repeats=3"),
        ),
        ("seconds", "ms per step", "of Att"),
    ),
    Part(
        "memory",
        "Peak memory at L = 1,000, batches of 32",
        (
            *(_of(EVERY), "--modes=exact", "--lengths=1000", "--num_sentences=32"),
            *("--repeats=1", "--memory"),
        ),
        ("MiB",),
        "Each figure is the peak of one process, without the memory of Python and its libraries, "
        "measured once. It includes what stays allocated after a first run, which compiles. Models "
        "with hardly any attention differ by 180 MiB, so differences between rows say little.",
    ),
    Part(
        "formats",
        "Number formats",
        (
            *(_of(CONTRASTED), "--modes=exact,uniform", "--lengths=200", "--num_sentences=512"),
            *("--precisions=float32,bfloat16_products", "--repeats=3"),
        ),
        ("seconds", "tokens/s", "of Att"),
    ),
    Part(
        "graphs",
        "XLA and TensorFlow's plain graph",
        (
            *(_of(CONTRASTED), "--modes=uniform", "--lengths=50,200", "--num_sentences=512"),
            *("--graphs=xla,plain", "--repeats=3"),
        ),
        ("seconds", "tokens/s", "compiling"),
        '"compiling" is what the first run took longer than the median; "-": nothing.',
    ),
    Part(
        "folding",
        "Maps of the context folded into the rows of the memory",
        (
            *(_of(("k_memory:32", "k_memory:64", "bahdanau")), "--modes=exact"),
            *("--lengths=20,50,200", ONE_BATCH, "--folded=yes,no,auto", "--repeats=3"),
        ),
        ("seconds", "ms per step"),
        '"auto" is the default: the rule of `search/folding.py` decides.',
    ),
    Part(
        "parts",
        "Parts of a step, toy model",
        (_of(MAIN), "--modes=exact", "--lengths=200", ONE_BATCH, "--repeats=3", "--parts"),
        ("ms per step", *STEP),
        "The last three columns are parts of a step, in milliseconds, compiled and timed alone. "
        "They need not add up to the time of a step.",
    ),
    *(
        _single(units, tokens, beam_size)
        for units, tokens in ((256, 20), (512, 16_000))
        for beam_size in (1, 10)
    ),
)

# Fields that make up a row's shape, with their titles; a table has a column for each that varies.
SHAPE = {
    "mode": "sources",
    "length": "L",
    "precision": "format",
    "jit_compile": "graph",
    "folded": "folded",
}


def _over(attention: str) -> Callable[[Result, Results], str]:
    """A column: the ratio of a row's time to another attention's time at the same shape."""

    def ratio(row: Result, rows: Results) -> str:
        shape = [row[key] for key in SHAPE]
        for other in rows:
            if other["attention"] == attention and [other[key] for key in SHAPE] == shape:
                return f"{row['seconds'] / other['seconds']:.2f}"
        return "-"

    return ratio


def _figure(key: str, form: str) -> Callable[[Result, Results], str]:
    """A column: "-" where the figure is missing or 0, which happens for compilation times."""
    return lambda row, rows: format(row[key], form) if row.get(key) else "-"


def _part(name: str) -> Callable[[Result, Results], str]:
    return lambda row, rows: f"{row['parts_ms'][name]:.2f}"


FIGURES: dict[str, Callable[[Result, Results], str]] = {
    "seconds": lambda row, rows: (
        f"{row['seconds']:.2f} ({min(row['all_seconds']):.2f} to {max(row['all_seconds']):.2f})"
    ),
    "tokens/s": _figure("target_tokens_per_second", ",.0f"),
    "ms per step": _figure("ms_per_step", ".2f"),
    "of No Att": _over("none"),
    "of Att": _over("bahdanau"),
    "MiB": _figure("peak_memory_mib", ",.0f"),
    "compiling": _figure("compile_seconds", ".1f"),
    "p50": _figure("p50_ms", ".1f"),
    "p95": _figure("p95_ms", ".1f"),
    **{name: _part(name) for name in STEP},
}


def introduction(scale: Scale) -> str:
    """The text of the page before its tables."""
    del scale
    return (
        "How does decoding time depend on the attention and on the length of the source? Untrained "
        "models decode random sources, and each hypothesis is forced to the length of its source. "
        "Times include the encoder but not compilation. Unless stated otherwise, models have 256 "
        "units, two layers and 20 symbols, and XLA decodes batches of 128 sources with a beam of "
        "10. The rows of a table were timed in turns. Times are medians, with minimum and maximum "
        "in brackets.\n\n"
        '"of No Att" and "of Att" are ratios to the times without attention and with Bahdanau\'s '
        'attention; below 1 is faster. "exact" sources all have L tokens, "uniform" sources 0 to '
        "L. Times of single sentences and of steps are in milliseconds, compilation is in seconds."
    )


def rows(scale: Scale) -> list[Any]:
    """The parts; `--rows` chooses among them."""
    return [part for part in PARTS if scale != "tiny" or part.name in TINY_PARTS]


def run(study: Study) -> Results:
    """Times the chosen parts that have no times yet."""
    more = TINY if study.scale == "tiny" else ()
    for part in PARTS:
        if part.name in study.names():
            measure_times(_path(study, part), [*part.arguments, *more])
    return results(study)


def results(study: Study) -> list[Result]:
    """The times of all parts that have been timed."""
    found = []
    for part in PARTS:
        if (path := _path(study, part)).exists():
            timed = read_json(path)
            made = {name: timed[name] for name in ("command", "commit", "hardware")}
            found += [
                {**row, **made, "part": part.name, "name": f"{part.name} {number}"}
                for number, row in enumerate(timed["rows"])
            ]
    return found


def _path(study: Study, part: Part) -> Path:
    """The file with the times of a part."""
    return study.results_dir / f"{part.name}.json"


def tables(found: Results) -> str:
    """A table for each part."""
    sections = []
    measured = {row["part"] for row in found}
    for part in PARTS:
        if part.name not in measured:
            continue
        timed = [row for row in found if row["part"] == part.name]
        differing = [key for key in SHAPE if len({row[key] for row in timed}) > 1]
        header = ["attention", *(SHAPE[key] for key in differing), *part.figures]
        cells = [
            [
                table_label(row["attention"]),
                *(_shown(key, row[key]) for key in differing),
                *(FIGURES[name](row, timed) for name in part.figures),
            ]
            for row in timed
        ]
        table = markdown_table(header, cells)
        parts = [f"## {part.label}", prose(part.note), table, origin(timed[0])]
        sections.append("\n\n".join(filter(None, parts)))
    return "\n\n".join(sections) + "\n"


def _shown(key: str, value: Any) -> str:
    if key == "jit_compile":
        return "XLA" if value else "plain"
    return str(value)


def claims(found: Results) -> list[Claim]:
    """The time of a step is constant."""
    claim = Claim(
        "the time of a step does not grow, K = 64",
        "constant (section 3)",
        "Reproduced if a step takes at most 1.1 times as long at the longest L as at the shortest, "
        "partly if at most 1.25 times, otherwise not.",
    )
    rows = [r for r in found if r["part"] == "growth" and r["attention"] == "k_memory:64"]
    if not rows:
        return [claim]
    by_length = sorted(rows, key=lambda row: row["length"])
    lengths, steps = ([row[key] for row in by_length] for key in ("length", "ms_per_step"))
    growth = steps[-1] / steps[0]
    verdict = from_cases([growth <= 1.1, growth <= 1.25])
    here = f"{steps[0]:.1f} to {steps[-1]:.1f} ms, L = {span(lengths, ',')}"
    return [claim.judged(here, verdict, timed_at(rows[0]))]


def draw(study: Study, found: Results, stem: Path) -> dict[str, str]:
    """Draws time by length for the main attentions, and time per step for a few and for all."""
    del study
    drawn = {}
    by_length = [row for row in found if row["part"] == "by_length"]
    paper = [
        {"attention": attention, "length": length, "seconds": seconds}
        for length, of_length in paper_seconds().items()
        for attention, seconds in of_length.items()
    ]
    for path in draw_times(by_length, stem.with_name(f"{stem.name}_by_length"), paper):
        if path.suffix == ".png":
            ending = path.stem.removeprefix(f"{stem.name}_")
            tokens = "0 to L" if "uniform" in ending else "exactly L"
            drawn[ending] = f"Decoding time for sources of {tokens} tokens"
    for part, ending, whose in (
        ("growth", "step_time", ""),
        ("attentions", "steps_of_all", " of every attention"),
    ):
        if steps := [row for row in found if row["part"] == part]:
            draw_step_times(steps, stem.with_name(f"{stem.name}_{ending}"))
            drawn[ending] = f"Time of a decoder step{whose} by length of the source"
    return drawn
