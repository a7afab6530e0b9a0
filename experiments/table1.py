"""Table 1 of the memory paper: BLEU and decoding time of the copy task."""

import dataclasses
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

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
from experiments.experiment import experiment_names, load_experiment
from experiments.study import Row, Scale, Study, copy_data, trained_on
from experiments.subject import markdown_table
from experiments.timings import origin, timings
from seq2seq_memattn.config import ModelConfig, TrainingConfig

HEADER = (
    *("Length", "Model", "BLEU, paper", "BLEU, ours", "exact lines"),
    *("seconds, paper", "seconds, ours", "updates", "minutes"),
)
TIMES_HEADER = (
    *("Length", "Model", "seconds, paper", "seconds, ours", "of No Att, paper", "of No Att, ours"),
    *("of Att, paper", "of Att, ours"),
)
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
    """The finished results with the decoding times of all models of their length."""
    every = () if of.results_dir.name == "tiny" else ATTENTIONS
    return add_decoding_times(of.finished(), of.results_dir, every)


def add_decoding_times(
    results: Sequence[dict[str, Any]], folder: Path, attentions: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """Adds how long 1,000 sources of 0..L tokens take, sorted, all models in turns.

    Decoding time depends on the shapes of a model, not on its weights, so untrained ones of the
    same shapes are timed, by `experiments.speed`.

    Args:
        results: of rows.
        folder: where the times are kept.
        attentions: whose models are timed; if empty, those of the results.

    Returns:
        The results with `decoding_seconds`, `decoded_on` (the machine and the size of batches),
        `decoding_times` (the seconds of every model of their length, by attention) and
        `decoded_by` (where these are from).
    """
    extended = []
    for name, group in figures(results).items():
        arguments = _timing_arguments(group, attentions)
        timed = timings(folder / f"decoding_{name}.json", arguments)
        seconds = {row["attention"]: row["seconds"] for row in timed["rows"]}
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


def _timing_arguments(group: Sequence[dict[str, Any]], attentions: Sequence[str]) -> list[str]:
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


def table1_markdown(results: Sequence[dict[str, Any]]) -> str:
    """The table: the paper's figures, ours, and how we got there."""
    rows = []
    for result in results:
        training, paper = result["training"], result["paper"]
        rows.append(
            [
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
        )
    trained = sorted({trained_on(result) for result in results})
    decoded = sorted({result["decoded_on"] for result in results})
    where = f"Trained on: {'; '.join(trained)}. Decoded on: {'; '.join(decoded)}."
    return f"{markdown_table(HEADER, rows)}\n\n{where}\n"


def _paper_seconds(length: int, attentions: Iterable[str]) -> dict[str, float]:
    """The paper's decoding times by attention; none for a length that it does not have."""
    names = {attention: f"copy_{length}_{short_name(attention)}" for attention in attentions}
    known = set(experiment_names())
    return {
        attention: load_experiment(name).paper["seconds"]
        for attention, name in names.items()
        if name in known
    }


def times_markdown(results: Sequence[dict[str, Any]]) -> str:
    """Seconds of decoding beside the paper's: over those without attention and with Bahdanau's."""
    rows, origins = [], []
    for group in figures(results).values():
        origins.append(f"* {group[0]['decoded_by']}")
        length, ours = group[0]["length"], group[0]["decoding_times"]
        papers = _paper_seconds(length, ours)
        rows += [
            [
                str(length),
                label(name),
                *(_figure(seconds.get(name)) for seconds in (papers, ours)),
                *(
                    _figure(
                        seconds[name] / seconds[other] if {name, other} <= seconds.keys() else None
                    )
                    for other in ("none", "bahdanau")
                    for seconds in (papers, ours)
                ),
            ]
            for name in ours
        ]
    return "\n".join([markdown_table(TIMES_HEADER, rows), "", *origins]) + "\n"


def seconds_to_best(result: dict[str, Any]) -> float:
    """Seconds of training up to the validation whose weights are a row's."""
    best = result["training"]["best_update"]
    points = [p for p in result["curve"] if p["kind"] == "valid" and p["update"] == best]
    return points[-1]["seconds"]


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def tables(results: Sequence[dict[str, Any]]) -> dict[str, str]:
    """The table, by suffix of its file."""
    text = f"{table1_markdown(results)}\n## Decoding time\n\n{times_markdown(results)}"
    return {".md": text, ".csv": _csv(results)}


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
