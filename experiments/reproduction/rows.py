"""Rows of tables: the data and options of each row, and the commands that train and test it."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

from seq2seq_memattn.config import ModelConfig, TrainingConfig
from seq2seq_memattn.presets.load import load_preset
from seq2seq_memattn.presets.preset import Preset

Scale = Literal["tiny", "small", "full"]

# Options that do not change what an update learns: a result stays valid if they change, although
# with a higher `stop_at_bleu`, training might have gone on.
WATCHING = ("stop_at_bleu", "checkpoint_minutes", "keep", "log_every", "max_nan_updates")


@dataclasses.dataclass(frozen=True)
class DataSource:
    """The data directory of a row, and the command that makes it.

    Args:
        folder: name of the data directory.
        command: the command and its options after `python -m`, without `--output_dir`.
        corpus: folder of the corpus in a study's `source_dir`; "" if no corpus is needed.
        translated_by: the row whose run translates the training sources; "" for none. Options of
            the command then name files: {corpus} stands for the folder of the corpus, {data} for
            the folder of the data directories, {translations} for the file of the translations.
    """

    folder: str
    command: tuple[str, ...]
    corpus: str = ""
    translated_by: str = ""


def copy_data(max_length: int, is_tiny: bool = False) -> DataSource:
    """The data of the copy task with sequences of at most `max_length` symbols."""
    num_train, num_valid = (400, 20) if is_tiny else (100_000, 1_000)
    options = (
        f"--max_length={max_length}",
        f"--num_train={num_train}",
        f"--num_valid={num_valid}",
    )
    return DataSource(f"copy_{max_length}_{num_train}", ("data_prep.copy_task", *options))


class Evaluation(NamedTuple):
    """One call of `experiments.evaluate`.

    Fields:
        name: name of its figures in the result.
        split: split of the data directory.
        flags: further flags.
        keeps_lines: whether its translations are kept beside the result.
    """

    name: str
    split: str
    flags: tuple[str, ...] = ()
    keeps_lines: bool = True


@dataclasses.dataclass(frozen=True)
class Row:
    """One row of a table.

    Args:
        name: name of the run's folder and of the result's file.
        config: preset on which the row is based.
        options: options that override the preset.
        data: the training data.
        label: name of the row in the table.
        curve: name of the row in figures; names of attentions have their own colours.
        paper: the paper's figures.
        length: int. L of the copy task; 0 for text.
        tests: evaluations in addition to the validation set.
        init_from: the row with whose best weights this one starts; "" for random weights.
        teacher: the row whose model guides this one; "" for none.
    """

    name: str
    config: str
    options: Mapping[str, Any]
    data: DataSource
    label: str
    curve: str
    paper: Mapping[str, float]
    length: int = 0
    tests: tuple[Evaluation, ...] = ()
    init_from: str = ""
    teacher: str = ""

    @property
    def needs(self) -> set[str]:
        """The names of the rows that must be trained before this one."""
        return {name for name in (self.init_from, self.teacher, self.data.translated_by) if name}

    def preset(self, runs_dir: Path | None = None) -> Preset:
        """The configuration of the row: model and training.

        Args:
            runs_dir: Path or None. Folder with the teacher's run; if None, the teacher row's name
                stands for the run's path.
        """
        teacher = str(runs_dir / self.teacher) if runs_dir and self.teacher else self.teacher
        return load_preset(self.config).with_options({**self.options, "teacher": teacher})


def identity(row: Row, rows: Mapping[str, Row] | None = None) -> dict[str, Any]:
    """The data and options of a row, in the form of a result's file.

    Args:
        row: the row.
        rows: all rows of the study by name, to record the options of the rows that the row needs;
            None: these are not recorded.
    """
    preset = row.preset()
    needed = {name: dict(rows[name].options) for name in sorted(row.needs)} if rows else {}
    return {
        "name": row.name,
        "length": row.length,
        "data": list(row.data.command),
        "evaluations": [[one.name, one.split, *one.flags] for one in row.tests],
        "init_from": row.init_from,
        **({"needs": needed} if needed else {}),
        "options": dict(row.options),
        "configuration": {
            "model": preset.model.to_dict(),
            "training": preset.training.to_dict(),
        },
    }


def is_result_of(row: Row, found: Mapping[str, Any], rows: Mapping[str, Row] | None = None) -> bool:
    """Whether a result was made with the row's current data and options.

    The row's evaluations, and the options of the rows that it needs, must also match, if the result
    has recorded them; see `identity`.

    An option that is newer than the result is taken to have had its default. The options in
    `WATCHING` may differ.
    """
    made = identity(row, rows)
    recorded = found.get("configuration", {"model": {}, "training": {}})
    try:
        before = {
            "model": ModelConfig.from_dict(recorded["model"]).to_dict(),
            "training": TrainingConfig.from_dict(recorded["training"]).to_dict(),
        }
    except ValueError:  # an option that no longer exists
        return False
    for name in WATCHING:
        before["training"][name] = made["configuration"]["training"][name]
    made = {"needs": found.get("needs"), **made}
    unless_recorded = {name: made[name] for name in ("needs", "evaluations")}
    found = {"init_from": "", **unless_recorded, **found}
    compared = ("name", "length", "data", "init_from", *unless_recorded)
    same = all(found.get(name) == made[name] for name in compared)
    return same and before == made["configuration"]


def train_arguments(row: Row, data: Path, run_dir: Path) -> list[str]:
    """The training command of a row, without `python -m`."""
    options = [f"--{name}={_flag(value)}" for name, value in row.options.items()]
    if begins_with := run_of_first_weights(row, run_dir):
        options.append(f"--init_from={begins_with}")
    if row.teacher:
        options.append(f"--teacher={run_dir.with_name(row.teacher)}")
    return [
        "experiments.train",
        f"--config={row.config}",
        f"--data_dir={data}",
        f"--run_dir={run_dir}",
        *options,
    ]


def _flag(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def run_of_first_weights(row: Row, run_dir: Path) -> Path | None:
    """The run with whose weights a row's training starts; None for random weights."""
    return run_dir.with_name(row.init_from) if row.init_from else None


def evaluate_arguments(evaluation: Evaluation, data: Path, run_dir: Path) -> list[str]:
    """The command of an evaluation, without `python -m`."""
    return [
        "experiments.evaluate",
        f"--run_dir={run_dir}",
        f"--source={data / evaluation.split}.source.txt",
        f"--reference={data / evaluation.split}.target.txt",
        f"--output_dir={run_dir / 'evaluation' / evaluation.name}",
        *evaluation.flags,
    ]
