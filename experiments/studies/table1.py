"""Table 1: the copy task.

Britz, Guan and Luong (2017): BLEU and decoding time.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from experiments.reproduction.pages import (
    learning_curves,
    markdown_table,
    prose,
    table_label,
    trained_at,
)
from experiments.reproduction.results import Result, Results, grouped, read_json
from experiments.reproduction.rows import Row, Scale, copy_data
from experiments.reproduction.study import Study
from experiments.reproduction.timings import measure_times, origin
from experiments.studies import _copy_claims
from experiments.studies._copy_claims import (
    PAPER,
    PAPER_UPDATES,
    paper_seconds,
    time_over,
)
from experiments.studies._setups import COPY, setup_table
from seq2seq_memattn.presets.copy_task import ATTENTIONS, LENGTHS

# Two CPU cores cannot train for 200,000 updates. With ten times the learning rate and Glorot's
# initialisation, rows learn in a few thousand updates. The rate is halved at each validation that
# is no better than the best: at a constant rate, rows that have learned vary by several BLEU. There
# is no dropout, because the task has no noise.
SMALL: dict[str, Any] = {
    "learning_rate": 1e-3,
    "schedule": "plateau",
    "decay_patience": 1,
    "initializer": "glorot",
    "dropout": 0.0,
    "num_updates": 6000,
    "validate_every": 250,
    "patience": 8,
    "stop_at_bleu": 99.9,
    "checkpoint_minutes": 5.0,
}
# Longer sequences are learned later, and are validated half as often. A GPU that trains all rows at
# the same time takes this number of updates in 20 minutes.
SMALL_LONG: dict[int, dict[str, Any]] = {
    100: {"validate_every": 500, "num_updates": 5000},
    200: {"validate_every": 500, "num_updates": 4000},
}
# A few updates of a narrow model, to check that everything runs.
TINY: dict[str, Any] = {
    "embedding_dim": 16,
    "encoder_units": 16,
    "decoder_units": 16,
    "attention_units": 16,
    "initializer": "glorot",  # in so narrow a model, uniform 0.04 makes gradients vanish
    "batch_size": 16,
    "num_updates": 4,
    "validate_every": 2,
    "valid_examples": 8,
    "beam_size": 2,
    "log_every": 1,
    "learning_rate": 1e-2,
}
TINY_LENGTH = 6

HEADER = ("L", "model", "BLEU, paper", "here", "exact lines", "updates, paper", "here", "minutes")
TIMES_HEADER = (
    *("L", "model", "seconds, paper", "here", "least to most"),
    *("over No Att, paper", "here", "over Att, paper", "here"),
)

INTRODUCTION = """
How well do models copy random sequences of at most L symbols from an alphabet of 20? BLEU is of
beam search (beam size 10) on 1,000 validation sequences, with the weights of the best validation.
Updates and minutes of training are counted up to that validation. There is no separate test set, so
the scores of models that vary between validations are a little too high. The paper trains for
200,000 updates with a learning rate of 1e-4. Its text names L = 10, 50, 100 and 200; its Table 1
has L = 20 instead of 10. We follow the table.

Equation 5 is read as a softmax over the source, so that each slot is an average of the source. The
paper prints it over the K slots. The paper does not say whether the encoder's and the decoder's
scores in Table 1 are softmaxes or sigmoids; here both are softmaxes, without position encodings.
[What the memory paper leaves open](ambiguities.md) compares these readings.
"""
DECODING = """
Times are seconds for decoding 1,000 sources of 0 to L symbols, sorted by length. The models are
untrained and have the same shapes; each hypothesis is forced to the length of its source. Times are
medians of several runs, with the models taking turns. XLA compiles the search; without XLA,
attention over the source is slower ([graphs](decoding.md#xla-and-tensorflows-plain-graph)). The
paper does not name the device for decoding; it trained on a K40m GPU.
"""


def introduction(scale: Scale) -> str:
    """The text of the page before its conclusion."""
    if scale != "small":
        return INTRODUCTION
    stop = (
        f"Here the learning rate is {SMALL['learning_rate']:g} and is halved at every validation "
        f"that is no better than the best. Training takes at most {SMALL['num_updates']:,} updates"
        f"{_of_long('num_updates')}. A run is validated every {SMALL['validate_every']} updates"
        f"{_of_long('validate_every')}. It ends at {SMALL['stop_at_bleu']} BLEU, "
        f"or {SMALL['patience']} validations after its best."
    )
    return f"{INTRODUCTION.strip()}\n\n{stop}"


def settings(scale: Scale) -> str:
    """A table of settings, the paper's and ours."""
    return setup_table(COPY, [one.preset() for one in rows(scale)])


def _of_long(option: str) -> str:
    """The values of an option for longer sequences, in brackets."""
    said = (f"{options[option]:,} at L = {length}" for length, options in SMALL_LONG.items())
    return f" ({', '.join(said)})"


def rows(scale: Scale) -> list[Row]:
    """The rows of every length."""
    return [row(length, name, scale) for length in LENGTHS for name in ATTENTIONS]


def chosen(scale: Scale) -> list[str]:
    """At full scale all rows, otherwise L = 20, which two cores train in hours."""
    return [] if scale == "full" else [f"copy_20_{name}" for name in ATTENTIONS]


def row(length: int, name: str, scale: Scale) -> Row:
    """A row at a scale.

    Args:
        length: int. L of the paper.
        name: name of the attention in file names.
        scale: scale of the training.
    """
    options = {"full": {}, "small": {**SMALL, **SMALL_LONG.get(length, {})}, "tiny": TINY}[scale]
    is_tiny, attention = scale == "tiny", ATTENTIONS[name]
    config, trained = f"copy_{length}_{name}", TINY_LENGTH if is_tiny else length
    bleu, seconds = PAPER[length][name]
    return Row(
        config,
        config,
        options,
        copy_data(trained, is_tiny),
        table_label(attention),
        attention,
        {"bleu": bleu, "seconds": seconds},
        trained,
    )


def run(study: Study) -> Results:
    """Trains the rows, and times the models of every length that has a finished row."""
    study.run()
    every = () if study.scale == "tiny" else tuple(ATTENTIONS.values())
    time_decoding(study.finished(), study.results_dir, every)
    return results(study)


def results(study: Study) -> list[Result]:
    """The finished results, with the decoding times of their length."""
    return with_decoding_times(study.finished(), study.results_dir)


def time_decoding(found: Results, folder: Path, attentions: Sequence[str] = ()) -> None:
    """Times decoding of 1,000 sorted sources of 0..L tokens, all models of one L in turns.

    Decoding time depends on the shapes of a model, not on its weights. `experiments.speed`
    therefore times untrained models of the same shapes.

    Args:
        found: results of rows.
        folder: folder for the files of times.
        attentions: attentions to time; if empty, those of the results.
    """
    for name, group in by_length(found).items():
        measure_times(_times_path(folder, name), _timing_arguments(group, attentions))


def with_decoding_times(found: Results, folder: Path) -> list[Result]:
    """Adds `decoding_seconds`, `decoded_on` and `timed` (the file of their length) to results.

    Results of a length without a file stay as they are.
    """
    extended = []
    for name, group in by_length(found).items():
        path = _times_path(folder, name)
        more: list[Result] = [{}] * len(group)
        if path.exists():
            timed = read_json(path)
            seconds = {one["attention"]: one["seconds"] for one in timed["rows"]}
            how = f"{timed['hardware']}, in batches of {timed['rows'][0]['batch_size']}"
            more = [
                {
                    "decoding_seconds": seconds.get(result["curve_name"]),
                    "decoded_on": how,
                    "timed": timed,
                }
                for result in group
            ]
        extended += [{**result, **times} for result, times in zip(group, more, strict=True)]
    return extended


def _times_path(folder: Path, name: str) -> Path:
    return folder / f"decoding_{name}.json"


def _timing_arguments(group: Results, attentions: Sequence[str]) -> list[str]:
    """The arguments of `experiments.speed` for the models of one length."""
    first = group[0]
    names = attentions or [result["curve_name"] for result in group]
    return [
        f"--lengths={first['length']}",
        f"--attentions={','.join(names)}",
        "--modes=uniform",
        f"--num_sentences={first['evaluation']['lines']}",
        f"--units={first['configuration']['model']['decoder_units']}",
    ]


def table(found: Results) -> str:
    """A Markdown table of the paper's figures, ours, and how they were obtained."""
    lines = [
        [
            str(result["length"]),
            result["label"],
            _figure(result["paper"].get("bleu")),
            _figure(result["bleu"]),
            f"{100 * result['evaluation']['exact']:.1f} %",
            f"{PAPER_UPDATES:,}",
            f"{result['training']['best_update']:,}",
            f"{_seconds_to_best(result) / 60:.0f}",
        ]
        for result in found
    ]
    where = prose(f"{trained_at(found)} One seed each.")
    return f"{markdown_table(HEADER, lines)}\n\n{where}\n"


def times_table(found: Results) -> str:
    """A table of decoding seconds, ours and the paper's, with ratios to No Att and to Att."""
    lines, origins = [], []
    for group in by_length(found).values():
        if "timed" not in group[0]:
            continue
        timed, length = group[0]["timed"], group[0]["length"]
        origins.append(f"L = {length}: {origin(timed)}")
        paper = paper_seconds().get(length, {})  # the paper lacks some lengths
        for row in timed["rows"]:
            name = row["attention"]
            least, most = min(row["all_seconds"]), max(row["all_seconds"])
            cells = [str(length), table_label(name), _figure(paper.get(name))]
            cells += [_figure(row["seconds"]), f"{least:.2f} to {most:.2f}"]
            for other in ("none", "bahdanau"):
                is_known = {name, other} <= paper.keys()
                cells.append(_figure(paper[name] / paper[other] if is_known else None))
                cells.append(_figure(time_over(timed, name, other)))
            lines.append(cells)
    return "\n\n".join([markdown_table(TIMES_HEADER, lines), *origins]) + "\n"


def _seconds_to_best(result: Result) -> float:
    """Seconds of training up to the best validation."""
    best = result["training"]["best_update"]
    points = [p for p in result["curve"] if p["kind"] == "valid" and p["update"] == best]
    return points[-1]["seconds"]


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def tables(found: Results) -> str:
    """Both tables."""
    parts = [table(found), "## Decoding time", prose(DECODING), times_table(found)]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def by_length(found: Results) -> dict[str, list[Result]]:
    """Groups results by length."""
    return grouped(found, lambda result: f"l{result['length']}")


def group_title(group: str) -> str:
    """The title of a group, such as "Copy task, L = 20, K = 32" for l20_k32."""
    sizes = (f"{part[0].upper()} = {part[1:]}" for part in group.split("_"))
    return f"Copy task, {', '.join(sizes)}"


claims = _copy_claims.claims
draw = learning_curves(by_length, group_title)
