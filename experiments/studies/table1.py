"""Table 1: the copy task.

BLEU and decoding time of the memory paper (Britz, Guan and Luong 2017).
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from experiments.reproduction.pages import learning_curves, markdown_table, table_label, trained_on
from experiments.reproduction.results import Result, Results
from experiments.reproduction.rows import Row, Scale, copy_data
from experiments.reproduction.study import Study
from experiments.reproduction.timings import origin, timings
from seq2seq_memattn.presets.copy_task import ATTENTIONS, LENGTHS

# The paper's BLEU, and its seconds for decoding, by length and attention.
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

# Two CPU cores cannot take 200,000 steps. With ten times the learning rate and Glorot's
# initialisation rows are learned in a few thousand. The rate is halved whenever a validation is no
# better than the best: at a constant one, rows that have learned rise and fall by several BLEU. No
# dropout: the task has no noise to be robust against.
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
# Longer sequences are learned later, and validated half as often. Their updates are what a GPU
# takes in 20 minutes, all rows side by side.
SMALL_LONG: dict[int, dict[str, Any]] = {
    100: {"validate_every": 500, "num_updates": 5000},
    200: {"validate_every": 500, "num_updates": 4000},
}
# A few updates of a narrow model, to see that all of it runs.
TINY: dict[str, Any] = {
    "embedding_dim": 16,
    "encoder_units": 16,
    "decoder_units": 16,
    "attention_units": 16,
    "initializer": "glorot",  # so narrow, uniform 0.04 leaves gradients that vanish
    "batch_size": 16,
    "num_updates": 4,
    "validate_every": 2,
    "valid_examples": 8,
    "beam_size": 2,
    "log_every": 1,
    "learning_rate": 1e-2,
}
TINY_LENGTH = 6

HEADER = (
    *("Length", "Model", "BLEU, paper", "BLEU, ours", "exact lines"),
    *("seconds, paper", "seconds, ours", "updates", "minutes"),
)
TIMES_HEADER = (
    *("Length", "Model", "seconds, paper", "seconds, ours", "of No Att, paper", "of No Att, ours"),
    *("of Att, paper", "of Att, ours"),
)
CSV_HEADER = (
    "length,model,paper_bleu,bleu,exact,paper_decoding_seconds,decoding_seconds,updates,"
    "training_seconds"
)

INTRODUCTION = """
Copies of random sequences of at most L of 20 symbols; BLEU of beam search (10) on 1,000 validation
sequences, weights of the best validation. Seconds are for decoding 1,000 sources of 0 to L symbols,
sorted by length, by an untrained model of the same shapes whose hypotheses are forced to the length
of their source; the paper's are of a K40m GPU. Minutes are of training, from the start to the best
validation. The paper trains for 200,000 updates with a learning rate of 1e-4.
"""


def introduction(scale: Scale) -> str:
    """What the page says before its table."""
    if scale != "small":
        return INTRODUCTION
    stop = (
        f"Here the learning rate is {SMALL['learning_rate']:g}, halved at every validation that "
        f"is no better than the best, with Glorot's initialisation and without dropout, for "
        f"{SMALL['num_updates']:,} updates at most{_of_long('num_updates')}. A run is validated "
        f"every {SMALL['validate_every']} updates{_of_long('validate_every')} and ends with "
        f"{SMALL['stop_at_bleu']} BLEU, or {SMALL['patience']} validations after its best."
    )
    return f"{INTRODUCTION.strip()}\n\n{stop}"


def _of_long(option: str) -> str:
    """How an option differs for longer sequences."""
    said = (f"{options[option]:,} at L = {length}" for length, options in SMALL_LONG.items())
    return f" ({', '.join(said)})"


def rows(scale: Scale) -> list[Row]:
    """The rows of every length."""
    return [row(length, name, scale) for length in LENGTHS for name in ATTENTIONS]


def chosen(scale: Scale) -> list[str]:
    """At full scale all; else L = 20, which two cores train within hours: others want a GPU."""
    return [] if scale == "full" else [f"copy_20_{name}" for name in ATTENTIONS]


def row(length: int, name: str, scale: Scale) -> Row:
    """A row at a scale.

    Args:
        length: int. L of the paper.
        name: of the attention, in names of files.
        scale: of its training.
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


def results(study: Study) -> list[Result]:
    """The finished results with the decoding times of all models of their length."""
    every = () if study.scale == "tiny" else tuple(ATTENTIONS.values())
    return add_decoding_times(study.finished(), study.results_dir, every)


def add_decoding_times(
    found: Results, folder: Path, attentions: Sequence[str] = ()
) -> list[Result]:
    """Adds how long 1,000 sources of 0..L tokens take, sorted, all models in turns.

    Decoding time depends on the shapes of a model, not on its weights, so untrained ones of the
    same shapes are timed, by `experiments.speed`.

    Args:
        found: results of rows.
        folder: where the times are kept.
        attentions: whose models are timed; if empty, those of the results.

    Returns:
        The results with `decoding_seconds`, `decoded_on` (the machine and the size of batches),
        `decoding_times` (the seconds of every model of their length, by attention) and
        `decoded_by` (where these are from).
    """
    extended = []
    for name, group in by_length(found).items():
        timed = timings(folder / f"decoding_{name}.json", _timing_arguments(group, attentions))
        seconds = {one["attention"]: one["seconds"] for one in timed["rows"]}
        how = f"{timed['hardware']}, in batches of {timed['rows'][0]['batch_size']}"
        extended += [
            {
                **result,
                "decoding_seconds": seconds[result["curve_name"]],
                "decoding_times": seconds,
                "decoded_on": how,
                "decoded_by": origin(timed),
            }
            for result in group
        ]
    return extended


def _timing_arguments(group: Results, attentions: Sequence[str]) -> list[str]:
    """The arguments of `experiments.speed` that time the models of a group's length."""
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
    """The paper's figures, ours, and how we got there, in Markdown."""
    lines = [
        [
            str(result["length"]),
            result["label"],
            _figure(result["paper"].get("bleu")),
            _figure(result["bleu"]),
            f"{100 * result['evaluation']['exact']:.1f} %",
            _figure(result["paper"].get("seconds")),
            _figure(result.get("decoding_seconds")),
            f"{result['training']['best_update']:,}",
            f"{_seconds_to_best(result) / 60:.0f}",
        ]
        for result in found
    ]
    trained = sorted({trained_on(result) for result in found})
    decoded = sorted({result["decoded_on"] for result in found})
    where = f"Trained on: {'; '.join(trained)}. Decoded on: {'; '.join(decoded)}."
    return f"{markdown_table(HEADER, lines)}\n\n{where}\n"


def times_table(found: Results) -> str:
    """Seconds of decoding beside the paper's: over those without attention and with Bahdanau's."""
    lines, origins = [], []
    for group in by_length(found).values():
        origins.append(f"* {group[0]['decoded_by']}")
        length, ours = group[0]["length"], group[0]["decoding_times"]
        known = paper_seconds().get(length, {})  # the paper does not have every length
        paper = {name: seconds for name, seconds in known.items() if name in ours}
        lines += [
            [
                str(length),
                table_label(name),
                *(_figure(seconds.get(name)) for seconds in (paper, ours)),
                *(
                    _figure(
                        seconds[name] / seconds[other] if {name, other} <= seconds.keys() else None
                    )
                    for other in ("none", "bahdanau")
                    for seconds in (paper, ours)
                ),
            ]
            for name in ours
        ]
    return "\n".join([markdown_table(TIMES_HEADER, lines), "", *origins]) + "\n"


def paper_seconds() -> dict[int, dict[str, float]]:
    """The paper's seconds for decoding by length and attention."""
    return {
        length: {ATTENTIONS[name]: seconds for name, (_, seconds) in figures.items()}
        for length, figures in PAPER.items()
    }


def _seconds_to_best(result: Result) -> float:
    """Seconds of training up to the validation whose weights are a row's."""
    best = result["training"]["best_update"]
    points = [p for p in result["curve"] if p["kind"] == "valid" and p["update"] == best]
    return points[-1]["seconds"]


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def tables(found: Results) -> dict[str, str]:
    """Both tables, and the first as CSV."""
    return {".md": f"{table(found)}\n## Decoding time\n\n{times_table(found)}", ".csv": _csv(found)}


def _csv(found: Results) -> str:
    lines = [CSV_HEADER]
    for result in found:
        training, paper = result["training"], result["paper"]
        lines.append(
            f"{result['length']},{result['label']},{paper.get('bleu', '')},{result['bleu']},"
            f"{result['evaluation']['exact']},{paper.get('seconds', '')},"
            f"{result['decoding_seconds']},{training['best_update']},{_seconds_to_best(result):.1f}"
        )
    return "\n".join(lines) + "\n"


def by_length(found: Results) -> dict[str, list[Result]]:
    """The results of each length."""
    groups: dict[str, list[Result]] = {}
    for result in found:
        groups.setdefault(f"l{result['length']}", []).append(result)
    return groups


draw = learning_curves(by_length)
