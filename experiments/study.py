"""Runs the rows of a table: prepares data, trains, evaluates, records; goes on where it stopped.

Each row is trained by the same command that a user would type, in a process of its own, so what
is recorded can be repeated by hand.
"""

import dataclasses
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from experiments import cli
from experiments.experiment import load_experiment
from experiments.jobs import Commands
from experiments.records import portable, provenance, read_json, write_json
from experiments.run_files import read_curve
from seq2seq_memattn.config import ModelConfig, TrainingConfig
from seq2seq_memattn.data.manifest import read_manifest
from seq2seq_memattn.text.files import atomic_binary

Scale = Literal["tiny", "small", "full"]

# Options of training that do not shape what is learned: a result stands if they change.
WATCHING = ("stop_at_bleu", "checkpoint_minutes", "keep", "log_every", "max_nan_updates")


@dataclasses.dataclass(frozen=True)
class DataSource:
    """The data directory of a row, and the command that makes it.

    Args:
        folder: names the directory.
        command: the command and its options behind `python -m`, without `--output_dir`.
        corpus: folder of its files in a study's `source_dir`; "" for data that needs none.
    """

    folder: str
    command: tuple[str, ...]
    corpus: str = ""


def copy_data(max_length: int, is_tiny: bool = False) -> DataSource:
    """The copy task of sequences of at most so many symbols."""
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
        name: of its figures in the result.
        split: of the data directory.
        flags: more of them.
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
        name: names the run's folder and the result's file.
        config: experiment that the row begins with.
        options: options that replace the experiment's.
        data: what it is trained on.
        label: what the table calls the row.
        curve: what figures call it: an attention's name has a colour of its own.
        paper: the paper's figures.
        length: int. L of the copy task; 0 for text.
        tests: evaluations beside that of the validation set.
        init_from: the row with whose best weights this one begins; "" for random ones.
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


@dataclasses.dataclass(frozen=True)
class Study:
    """Rows and where their data, runs and results go.

    Args:
        rows: all rows.
        runs_dir: Path. One run directory per row.
        results_dir: Path. One JSON file per row.
        data_dir: Path. Where the data directories are.
        source_dir: Path or None. Has the files of corpora, each in a folder of its name; None:
            they are downloaded.
        jobs: int > 0. Rows trained at a time, each with its share of the cores. In the steps of
            small models cores often wait for each other.
        chosen: names of the rows that are run, in their order; all rows if empty.
    """

    rows: Sequence[Row]
    runs_dir: Path
    results_dir: Path
    data_dir: Path
    source_dir: Path | None = None
    jobs: int = 1
    chosen: Sequence[str] = ()

    def names(self) -> list[str]:
        """The names of the rows that are run."""
        return list(self.chosen or (row.name for row in self.rows))

    def run(self) -> list[dict[str, Any]]:
        """Runs those of the chosen rows that are not finished; returns their results in order."""
        by_name = {row.name: row for row in self.rows}
        chosen = [by_name[name] for name in self.names()]
        first = {row.init_from: by_name[row.init_from] for row in chosen if row.init_from}
        first |= {row.name: row for row in chosen if not row.init_from}
        preparing = threading.Lock()  # rows that share a data directory make it once
        results = {}
        with Commands(self.jobs) as commands:
            for rows in (list(first.values()), [row for row in chosen if row.init_from]):
                found = commands.map(lambda row: self._run_row(row, commands, preparing), rows)
                results.update({result["name"]: result for result in found})
        return [results[row.name] for row in chosen]

    def finished(self) -> list[dict[str, Any]]:
        """The results of the rows as they are now that are there, in the order of the rows."""
        results = []
        for row in self.rows:
            path = self.result_path(row)
            if path.exists() and is_result_of(row, found := read_json(path)):
                results.append(found)
            elif path.exists():
                cli.print_note(f"{row.name}: left out, {path} was made with other options")
        return results

    def result_path(self, row: Row) -> Path:
        """Where the result of a row is."""
        return self.results_dir / f"{row.name}.json"

    def _run_row(self, row: Row, commands: Commands, preparing: threading.Lock) -> dict[str, Any]:
        path, run_dir = self.result_path(row), self.runs_dir / row.name
        if path.exists():
            found = read_json(path)
            if is_result_of(row, found):
                cli.print_note(f"{row.name}: already there, {path}")
                return found
            cli.print_note(f"{row.name}: was made with other options, and is made again")
        with preparing:
            data = self.prepare(row.data, lambda command: commands.run(command, row.data.folder))
        if run_dir.exists() and not _goes_on(row, data, run_dir):
            _move_aside(run_dir)
        arguments = train_arguments(row, data, run_dir)
        cli.print_note(f"{row.name}: python -m {' '.join(arguments)}")
        training = commands.run(arguments, row.name)
        evaluation, *tests = (
            {
                **commands.run(evaluate_arguments(one, data, run_dir), row.name),
                "run_dir": portable(str(run_dir)),
            }
            for one in (Evaluation("valid", "valid"), *row.tests)
        )
        for one in row.tests:
            if one.keeps_lines:
                self._keep_lines(row, one, run_dir)
        result = {
            **identity(row),
            "label": row.label,
            "curve_name": row.curve,
            "paper": dict(row.paper),
            "bleu": evaluation["bleu"],
            "training": training,
            "evaluation": evaluation,
            "tests": {one.name: found for one, found in zip(row.tests, tests, strict=True)},
            "curve": read_curve(run_dir),
            **provenance(training.pop("hardware")),
            "command": f"python -m {' '.join(map(portable, arguments))}",
            "jobs": self.jobs,
        }
        write_json(path, result)
        return result

    def lines_path(self, row: Row, split: str) -> Path:
        """Where the translations of a test set are kept, which do not change with the scores."""
        return self.results_dir / f"{row.name}.{split}.txt"

    def _keep_lines(self, row: Row, test: Evaluation, run_dir: Path) -> None:
        lines = (run_dir / "evaluation" / test.name / "hypotheses.txt").read_bytes()
        path = self.lines_path(row, test.split)
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_binary(path) as stream:
            stream.write(lines)

    def prepare(self, data: DataSource, run: Callable[[list[str]], Any]) -> Path:
        """Makes a data directory, unless it is there already.

        Args:
            data: what to make.
            run: runs a command, given behind `python -m`.

        Returns:
            The data directory.
        """
        made, corpus = self.data_dir / data.folder, data.corpus
        where = [f"--source_dir={self.source_dir / corpus}"] if corpus and self.source_dir else []
        run([*data.command, *where, f"--output_dir={made}"])
        return made


def identity(row: Row) -> dict[str, Any]:
    """What a result was made with, as its file says it."""
    experiment = load_experiment(row.config).with_options(row.options)
    return {
        "name": row.name,
        "length": row.length,
        "data": list(row.data.command),
        "init_from": row.init_from,
        "options": dict(row.options),
        "configuration": {
            "model": experiment.model.to_dict(),
            "training": experiment.training.to_dict(),
        },
    }


def is_result_of(row: Row, found: Mapping[str, Any]) -> bool:
    """Whether a result was made with what the row has now.

    An option that came later than the result counts as having its default then. Where a run that
    has learned is cut, and how it is watched, makes no other result.
    """
    made = identity(row)
    recorded = found.get("configuration", {"model": {}, "training": {}})
    try:
        before = {
            "model": ModelConfig.from_dict(recorded["model"]).to_dict(),
            "training": TrainingConfig.from_dict(recorded["training"]).to_dict(),
        }
    except ValueError:  # an option that is no more
        return False
    for name in WATCHING:
        before["training"][name] = made["configuration"]["training"][name]
    found = {"init_from": "", **found}
    same = all(found.get(name) == made[name] for name in ("name", "length", "data", "init_from"))
    return same and before == made["configuration"]


def _goes_on(row: Row, data: Path, run_dir: Path) -> bool:
    """Whether a run that is there is one of the row, perhaps cut elsewhere."""
    from seq2seq_memattn.data.model_sizes import fit_to_data
    from seq2seq_memattn.runs.directory import check_run

    experiment = load_experiment(row.config).with_options(row.options)
    try:
        model = fit_to_data(experiment.model, read_manifest(data), data)
        check_run(run_dir, data, model, experiment.training, _beginning(row, run_dir))
    except ValueError:
        return False
    return True


def _beginning(row: Row, run_dir: Path) -> Path | None:
    """The run with whose weights that of a row begins."""
    return run_dir.with_name(row.init_from) if row.init_from else None


def _move_aside(run_dir: Path) -> None:
    """Keeps a run of other options under another name."""
    number = 1
    while (old := run_dir.with_name(f"{run_dir.name}_before_{number}")).exists():
        number += 1
    run_dir.rename(old)
    cli.print_note(f"the run before is kept: {old}")


def make_study(rows: Sequence[Row], names: Sequence[str], folder: str, *where: Path) -> Study:
    """A study of some rows.

    Args:
        rows: all there are.
        names: of those to run; all if empty or `all`.
        folder: of this study, below both of `where`.
        where: where runs and data go, and where results go.

    Raises:
        ValueError: for a name that is no row.
    """
    work_dir, results_dir = where
    known = [row.name for row in rows]
    names = known if list(names) == ["all"] else names
    for name in names:
        if name not in known:
            raise ValueError(f"--rows: expected some of {', '.join(known)}; got {name!r}")
    places = (work_dir / folder, results_dir / folder, work_dir / "data")
    return Study(rows, *places, chosen=names)


def evaluate_arguments(evaluation: Evaluation, data: Path, run_dir: Path) -> list[str]:
    """The command of an evaluation, behind `python -m`."""
    return [
        "experiments.evaluate",
        f"--run_dir={run_dir}",
        f"--source={data / evaluation.split}.source.txt",
        f"--reference={data / evaluation.split}.target.txt",
        f"--output_dir={run_dir / 'evaluation' / evaluation.name}",
        *evaluation.flags,
    ]


def train_arguments(row: Row, data: Path, run_dir: Path) -> list[str]:
    """The training command of a row, behind `python -m`."""
    options = [f"--{name}={_flag(value)}" for name, value in row.options.items()]
    if begins_with := _beginning(row, run_dir):
        options.append(f"--init_from={begins_with}")
    return [
        "experiments.train",
        f"--config={row.config}",
        f"--data_dir={data}",
        f"--run_dir={run_dir}",
        *options,
    ]


def _flag(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def trained_on(result: dict[str, Any]) -> str:
    """What a result was trained on; a lone row has all cores."""
    jobs, backend = result.get("jobs", 1), result.get("backend")
    at_a_time = f", {jobs} rows at a time" if jobs > 1 else ""
    return f"{result['hardware']}{f', {backend}' if backend else ''}{at_a_time}"


def valid_curves(results: Sequence[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """The validations of each result, as `plots.learning_curves` takes them."""
    return {
        result["curve_name"]: [point for point in result["curve"] if point["kind"] == "valid"]
        for result in results
    }
