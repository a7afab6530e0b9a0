"""A study: what a file in `experiments/studies` has, and its rows, run one by one.

Each row is trained by the same command that a user would type, in a process of its own, so what
is recorded can be repeated by hand. Interrupted, a study goes on where it stopped.
"""

import dataclasses
import importlib
import pkgutil
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from experiments import studies
from experiments.reproduction.claims import Claim
from experiments.reproduction.jobs import Commands
from experiments.reproduction.results import (
    Result,
    Results,
    portable,
    provenance,
    read_curve,
    read_json,
    write_json,
)
from experiments.reproduction.rows import (
    DataSource,
    Evaluation,
    Row,
    Scale,
    evaluate_arguments,
    identity,
    is_result_of,
    run_of_first_weights,
    train_arguments,
)
from seq2seq_memattn.data.manifest import read_manifest
from seq2seq_memattn.notes import print_note
from seq2seq_memattn.text.files import atomic_binary


@dataclasses.dataclass(frozen=True)
class Study:
    """A study at a scale: its rows and where their data, runs and results go.

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
        scale: of the rows.
    """

    rows: Sequence[Row]
    runs_dir: Path
    results_dir: Path
    data_dir: Path
    source_dir: Path | None = None
    jobs: int = 1
    chosen: Sequence[str] = ()
    scale: Scale = "small"

    def names(self) -> list[str]:
        """The names of the rows that are run."""
        return list(self.chosen or (row.name for row in self.rows))

    def run(self) -> Results:
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

    def finished(self) -> list[Result]:
        """The results of the rows as they are now that are there, in the order of the rows."""
        results = []
        for row in self.rows:
            path = self.result_path(row)
            if path.exists() and is_result_of(row, found := read_json(path)):
                results.append(found)
            elif path.exists():
                print_note(f"{row.name}: left out, {path} was made with other options")
        return results

    def result_path(self, row: Row) -> Path:
        """Where the result of a row is."""
        return self.results_dir / f"{row.name}.json"

    def lines_path(self, row: Row, split: str) -> Path:
        """Where the translations of a test set are kept, which do not change with the scores."""
        return self.results_dir / f"{row.name}.{split}.txt"

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

    def _run_row(self, row: Row, commands: Commands, preparing: threading.Lock) -> Result:
        path, run_dir = self.result_path(row), self.runs_dir / row.name
        if path.exists():
            found = read_json(path)
            if is_result_of(row, found):
                print_note(f"{row.name}: already there, {path}")
                return found
            print_note(f"{row.name}: was made with other options, and is made again")
        with preparing:
            data = self.prepare(row.data, lambda command: commands.run(command, row.data.folder))
        if run_dir.exists() and not _goes_on(row, data, run_dir):
            _move_aside(run_dir)
        arguments = train_arguments(row, data, run_dir)
        print_note(f"{row.name}: python -m {' '.join(arguments)}")
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

    def _keep_lines(self, row: Row, test: Evaluation, run_dir: Path) -> None:
        lines = (run_dir / "evaluation" / test.name / "hypotheses.txt").read_bytes()
        path = self.lines_path(row, test.split)
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_binary(path) as stream:
            stream.write(lines)


def _goes_on(row: Row, data: Path, run_dir: Path) -> bool:
    """Whether an existing run belongs to the row; it may stop at another update."""
    from seq2seq_memattn.data.model_sizes import fit_to_data
    from seq2seq_memattn.runs.directory import check_run

    preset = row.preset()
    try:
        model = fit_to_data(preset.model, read_manifest(data), data)
        check_run(run_dir, data, model, preset.training, run_of_first_weights(row, run_dir))
    except ValueError:
        return False
    return True


def _move_aside(run_dir: Path) -> None:
    """Keeps a run of other options under another name."""
    number = 1
    while (old := run_dir.with_name(f"{run_dir.name}_before_{number}")).exists():
        number += 1
    run_dir.rename(old)
    print_note(f"the run before is kept: {old}")


def _no_figures(study: Study, results: Results, stem: Path) -> dict[str, str]:
    return {}


class Definition(NamedTuple):
    """What a file in `experiments/studies` has under these names; a default may be left out.

    Fields:
        title: of its page: the first line of the file's docstring.
        introduction: what its page says before the tables, at a scale; `INTRODUCTION` if that is
            the same at every scale.
        tables: the files made of its results: suffix and text. The first is Markdown.
        runs_of: the study whose rows it has, with their runs and results, as `RUNS_OF`; itself
            without it.
        rows: what is run at a scale; a study that trains nothing has none.
        chosen: names of the rows that are run unless others are asked for; none: all.
        run: makes what is missing.
        results: what is there: the finished results, with what was measured of them.
        draw: draws figures into files that begin with a path; returns what each shows, by what its
            file's name ends with.
        claims: findings of the paper beside those of the results.
    """

    title: str
    introduction: Callable[[Scale], str]
    tables: Callable[[Results], dict[str, str]]
    runs_of: str
    rows: Callable[[Scale], Sequence[Row]] = lambda scale: ()
    chosen: Callable[[Scale], Sequence[str]] = lambda scale: ()
    run: Callable[[Study], Results] = Study.run
    results: Callable[[Study], Results] = Study.finished
    draw: Callable[[Study, Results, Path], dict[str, str]] = _no_figures
    claims: Callable[[Results], Sequence[Claim]] = lambda results: ()


def study_names() -> list[str]:
    """The studies there are: the files of `experiments/studies`."""
    found = (module.name for module in pkgutil.iter_modules(studies.__path__))
    return sorted(name for name in found if not name.startswith("_"))


def load_definition(name: str) -> Definition:
    """What the file of a study has.

    Raises:
        ValueError: if there is no such file.
    """
    if name not in study_names():
        raise ValueError(f"expected one of {', '.join(study_names())}; got {name!r}")
    module = importlib.import_module(f"experiments.studies.{name}")
    defined = vars(module)
    parts = {part: defined[part] for part in Definition._fields if part in defined}
    parts.setdefault("introduction", lambda scale: defined["INTRODUCTION"])
    title = (module.__doc__ or "").partition("\n")[0].rstrip(".")
    return Definition(title=title, runs_of=defined.get("RUNS_OF", name), **parts)


def make_study(
    name: str,
    scale: Scale,
    names: Sequence[str],
    work_dir: Path,
    results_dir: Path,
    source_dir: Path | None = None,
    jobs: int = 1,
) -> Study:
    """A study at a scale.

    Args:
        name: of its file.
        scale: "full" is the paper's set-up, "small" what two CPU cores train, "tiny" runs in
            seconds.
        names: rows to run; all for `all`, those of `chosen` if empty.
        work_dir: where runs and data go.
        results_dir: where results go.
        source_dir, jobs: see `Study`.

    Raises:
        ValueError: for a name that is no row.
    """
    definition = load_definition(name)
    rows = definition.rows(scale)
    known = [row.name for row in rows]
    names = known if list(names) == ["all"] else names or definition.chosen(scale)
    for one in names:
        if one not in known:
            raise ValueError(f"--rows: expected some of {', '.join(known)}; got {one!r}")
    folder = Path(definition.runs_of, scale)
    places = (work_dir / folder, results_dir / folder, work_dir / "data")
    return Study(rows, *places, source_dir, jobs, list(names), scale)
