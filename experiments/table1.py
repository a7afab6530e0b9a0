"""Table 1 of the memory paper: BLEU and decoding time of the copy task."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from experiments import study
from experiments.copy_rows import (
    ATTENTIONS,
    LENGTHS,
    SMALL,
    SMALL_LONG,
    label,
    short_name,
    small,
    tiny,
)
from experiments.experiment import load_experiment
from experiments.study import Row, Study, copy_data
from experiments.timings import timings
from seq2seq_memattn.config import ModelConfig, TrainingConfig

Scale = Literal["tiny", "small", "full"]
SMALL_LENGTHS = (20,)  # what two CPU cores train within hours; the others want a GPU

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


def make_study(scale: Scale, names: Sequence[str], work_dir: Path, results_dir: Path) -> Study:
    """The rows of Table 1.

    Args:
        scale: "full" is the paper's set-up, "small" what two CPU cores train (with
            `copy_rows.SMALL`), "tiny" runs in seconds.
        names: rows to run; if empty, all at full scale, else those of `SMALL_LENGTHS`.
        work_dir, results_dir: where runs and results go.

    Raises:
        ValueError: for a name that is no row.
    """
    rows = {
        length: [table1_row(f"copy_{length}_{short_name(name)}", scale) for name in ATTENTIONS]
        for length in LENGTHS
    }
    by_default = LENGTHS if scale == "full" else SMALL_LENGTHS
    names = names or [row.name for length in by_default for row in rows[length]]
    every = [row for length in LENGTHS for row in rows[length]]
    return study.make_study(every, names, f"table1/{scale}", work_dir, results_dir)


def table1_row(name: str, scale: Scale) -> Row:
    """The row of an experiment at a scale, with the options that differ from the experiment's."""
    experiment = load_experiment(name)
    scaled = {"full": lambda e: e, "small": small, "tiny": tiny}[scale](experiment)
    options = {
        **_differences(experiment.model, scaled.model),
        **_differences(experiment.training, scaled.training),
    }
    attention = experiment.model.attention
    return Row(
        name,
        name,
        options,
        copy_data(scaled.max_length, scale == "tiny"),
        label(attention),
        attention,
        experiment.paper,
        scaled.max_length,
    )


def _differences(
    before: ModelConfig | TrainingConfig, now: ModelConfig | TrainingConfig
) -> dict[str, Any]:
    old, new = dataclasses.asdict(before), dataclasses.asdict(now)
    return {name: value for name, value in new.items() if value != old[name]}


def extend(of: Study) -> list[dict[str, Any]]:
    """The finished results with their decoding times."""
    return add_decoding_times(of.finished(), of.results_dir)


def add_decoding_times(results: Sequence[dict[str, Any]], folder: Path) -> list[dict[str, Any]]:
    """Adds how long 1,000 sources of 0..L tokens take, sorted, all models in turns.

    As `decoding_seconds`, and `decoded_on`: the machine and the size of batches.

    Decoding time depends on the shapes of a model, not on its weights, so untrained ones of the
    same shapes are timed, by `experiments.speed`.
    """
    extended = []
    for name, group in figures(results).items():
        timed = timings(folder / f"decoding_{name}.json", _timing_arguments(group))
        by_attention = {row["attention"]: row for row in timed["rows"]}
        for result in group:
            row = by_attention[result["curve_name"]]
            how = f"{timed['hardware']}, in batches of {row['batch_size']}"
            extended.append({**result, "decoding_seconds": row["seconds"], "decoded_on": how})
    return extended


def _timing_arguments(group: Sequence[dict[str, Any]]) -> list[str]:
    """The arguments of `experiments.speed` that time the models of a group."""
    first = group[0]
    return [
        f"--lengths={first['length']}",
        f"--attentions={','.join(result['curve_name'] for result in group)}",
        "--modes=uniform",
        f"--num_sentences={first['evaluation']['lines']}",
        f"--units={first['configuration']['model']['decoder_units']}",
    ]


def table1_markdown(results: Sequence[dict[str, Any]]) -> str:
    """The table: the paper's figures, ours, and how we got there."""
    lines = [
        "| Length | Model | BLEU, paper | BLEU, ours | exact lines | seconds, paper "
        "| seconds, ours | updates | minutes |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for result in results:
        training, paper = result["training"], result["paper"]
        cells = [
            str(result["length"]),
            result["label"],
            _figure(paper.get("bleu")),
            _figure(result["bleu"]),
            f"{100 * result['evaluation']['exact']:.1f} %",
            _figure(paper.get("seconds")),
            _figure(result.get("decoding_seconds")),
            f"{training['best_update']:,}",
            f"{seconds_to_best(result) / 60:.0f}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    trained = sorted({machine(result) for result in results})
    decoded = sorted({result["decoded_on"] for result in results})
    where = f"Trained on: {'; '.join(trained)}. Decoded on: {'; '.join(decoded)}."
    return "\n".join([*lines, "", where]) + "\n"


def machine(result: dict[str, Any]) -> str:
    """What a result was trained on; a lone row has all cores."""
    jobs, backend = result.get("jobs", 1), result.get("backend")
    at_a_time = f", {jobs} rows at a time" if jobs > 1 else ""
    return f"{result['hardware']}{f', {backend}' if backend else ''}{at_a_time}"


def seconds_to_best(result: dict[str, Any]) -> float:
    """Seconds of training up to the validation whose weights are a row's."""
    best = result["training"]["best_update"]
    points = [p for p in result["curve"] if p["kind"] == "valid" and p["update"] == best]
    return points[-1]["seconds"]


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def tables(results: Sequence[dict[str, Any]]) -> dict[str, str]:
    """The table, by suffix of its file."""
    return {".md": table1_markdown(results), ".csv": _csv(results)}


def _csv(results: Sequence[dict[str, Any]]) -> str:
    lines = [
        "length,model,paper_bleu,bleu,exact,paper_decoding_seconds,decoding_seconds,updates,"
        "training_seconds"
    ]
    for result in results:
        training, paper = result["training"], result["paper"]
        lines.append(
            f"{result['length']},{result['label']},{paper.get('bleu', '')},{result['bleu']},"
            f"{result['evaluation']['exact']},{paper.get('seconds', '')},"
            f"{result['decoding_seconds']},{training['best_update']},{seconds_to_best(result):.1f}"
        )
    return "\n".join(lines) + "\n"


def figures(results: Sequence[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """The rows of each length."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for result in results:
        groups.setdefault(f"l{result['length']}", []).append(result)
    return groups
