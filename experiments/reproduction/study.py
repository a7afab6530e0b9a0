"""Studies: the contents of a file in `experiments/studies`, and running its rows.

Each row is trained in a separate process by the command that a user would type, so every result can
be repeated by hand. An interrupted study resumes where it stopped.
"""

import dataclasses
import importlib
import pkgutil
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from experiments import studies
from experiments.reproduction.claims import Claim
from experiments.reproduction.jobs import Commands
from experiments.reproduction.results import (
    Result,
    Results,
    commit,
    in_words,
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
from seq2seq_memattn.data.manifest import MANIFEST_NAME, read_manifest, sha256_of
from seq2seq_memattn.notes import print_note
from seq2seq_memattn.text.files import atomic_binary

# Options of validation, by which the best weights are chosen.
VALIDATING = ("validate_every", "valid_examples", "beam_size", "patience")


@dataclasses.dataclass(frozen=True)
class Study:
    """A study at one scale: its rows, and the folders of their data, runs and results.

    Args:
        rows: all rows.
        runs_dir: Path. Has one run directory per row.
        results_dir: Path. Has one JSON file per row.
        data_dir: Path. Has the data directories.
        source_dir: Path or None. Has the corpora, each in a folder of its name; None: they are
            downloaded.
        jobs: int > 0. Rows trained at a time, each with its share of the cores. Small models leave
            cores idle, so several at a time are faster together.
        chosen: names of the rows to run, in order; all rows if empty.
        scale: scale of the rows.
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
        """The names of the rows to run."""
        return list(self.chosen or (row.name for row in self.rows))

    @property
    def _by_name(self) -> dict[str, Row]:
        return {row.name: row for row in self.rows}

    def run(self) -> Results:
        """Runs unfinished chosen rows; returns the results of all chosen rows, in order."""
        by_name = self._by_name
        chosen = [by_name[name] for name in reversed(self.names())]
        waiting: dict[str, Row] = {}
        while chosen:
            row = chosen.pop()
            waiting[row.name] = row
            chosen += [by_name[name] for name in row.needs if name not in waiting]
        made = self._to_make(waiting)
        preparing = threading.Lock()  # rows with the same data directory make it only once
        results: dict[str, Result] = {}

        def result_of(row: Row) -> Result:
            if row.name in made:
                return self._make(row, commands, preparing)
            print_note(f"{row.name}: finished already, {self.result_path(row)}")
            return read_json(self.result_path(row))

        with Commands(self.jobs) as commands:
            while waiting:
                ready = [row for row in waiting.values() if not row.needs & waiting.keys()]
                if not ready:
                    raise ValueError(f"rows that need each other: {', '.join(waiting)}")
                found = commands.map(result_of, ready)
                results |= {result["name"]: result for result in found}
                waiting = {name: row for name, row in waiting.items() if name not in results}
        return [results[name] for name in self.names()]

    def _to_make(self, rows: Mapping[str, Row]) -> set[str]:
        """The names of rows without a result, and of rows whose missing runs these rows need."""
        made = {name for name, row in rows.items() if not self._is_finished(row)}
        while True:
            needed = {name for made_row in made for name in rows[made_row].needs}
            finished = {name: read_json(self.result_path(rows[name])) for name in needed - made}
            missing = {name for name, one in finished.items() if not self.has_run_of(one)}
            if not missing:
                return made
            for name in sorted(missing):
                print_note(f"{name}: run again, because another row needs its run, which is lost")
            made |= missing

    def _is_finished(self, row: Row) -> bool:
        path = self.result_path(row)
        if not path.exists():
            return False
        fits = is_result_of(row, read_json(path), self._by_name)
        if not fits:
            print_note(f"{row.name}: the result was made with other options: run again")
        return fits

    def has_run_of(self, result: Result) -> bool:
        """Whether the run of a result is here with its best weights.

        It is not if the result is from elsewhere, or if the run was begun again and not finished.
        """
        from seq2seq_memattn.runs.checkpoints import read_record
        from seq2seq_memattn.runs.directory import BEST_NAME

        best, training = read_record(self.runs_dir / result["name"] / BEST_NAME), result["training"]
        names = ("update", "bleu")
        return all(best.get(name) == training[f"best_{name}"] for name in names)

    def _weights_needed(self, row: Row) -> dict[str, str]:
        """Checksums of the weights of the runs that a row needs."""
        from seq2seq_memattn.runs.directory import BEST_NAME

        weights = {name: self.runs_dir / name / BEST_NAME for name in sorted(row.needs)}
        return {name: sha256_of(path) for name, path in weights.items() if path.exists()}

    def finished(self) -> list[Result]:
        """The existing results that fit the current rows, in order, with the rows' names."""
        results = []
        for row in self.rows:
            path = self.result_path(row)
            if path.exists() and is_result_of(row, found := read_json(path), self._by_name):
                results.append({**found, "label": row.label, "curve_name": row.curve})
            elif path.exists():
                print_note(f"{row.name}: left out, {path} was made with other options")
        return results

    def result_path(self, row: Row) -> Path:
        """The file of a row's result."""
        return self.results_dir / f"{row.name}.json"

    def lines_path(self, row: Row, split: str) -> Path:
        """The file of a row's translations of a test set, from which scores can be recomputed."""
        return self.results_dir / f"{row.name}.{split}.txt"

    def prepare(self, data: DataSource, run: Callable[[list[str]], Any]) -> Path:
        """Makes a data directory, unless it exists already.

        Args:
            data: the data to make.
            run: runs a command, given without `python -m`.

        Returns:
            The data directory.
        """
        made, corpus = self.data_dir / data.folder, data.corpus
        if data.translated_by:
            # The command names files, which may have moved since.
            if not (made / MANIFEST_NAME).exists():
                run([*self._with_translations(data, run), f"--output_dir={made}"])
            return made
        where = [f"--source_dir={self.source_dir / corpus}"] if corpus and self.source_dir else []
        run([*data.command, *where, f"--output_dir={made}"])
        return made

    def _with_translations(self, data: DataSource, run: Callable[[list[str]], Any]) -> list[str]:
        """Translates the sources of `data` if needed; returns the command that makes its directory.

        The command may also read files from the data directory of the row that translates.
        """
        if self.source_dir is None:
            raise ValueError(
                f"--source_dir: needed for {data.folder}, whose sources are translated"
            )
        translator = self._by_name[data.translated_by]
        if not (self.data_dir / translator.data.folder).exists():
            self.prepare(translator.data, run)
        translations = self.data_dir / f"{data.folder}.gz"
        places = {
            "corpus": self.source_dir / data.corpus,
            "data": self.data_dir,
            "translations": translations,
        }
        command = [option.format(**places) for option in data.command]
        if not translations.exists():
            prefix = "--train_source="
            (sources,) = (one.removeprefix(prefix) for one in command if one.startswith(prefix))
            run_dir = self.runs_dir / data.translated_by
            translate = ["experiments.translate", f"--run_dir={run_dir}", f"--input={sources}"]
            run([*translate, f"--output={translations}"])
        return command

    def _set_translations_aside(self, row: Row) -> None:
        """Renames the data that an earlier run of this row has translated."""
        for folder in {one.data.folder for one in self.rows if one.data.translated_by == row.name}:
            for made in (self.data_dir / folder, self.data_dir / f"{folder}.gz"):
                if made.exists():
                    _move_aside(made)

    def _make(self, row: Row, commands: Commands, preparing: threading.Lock) -> Result:
        run_dir = self.runs_dir / row.name
        with preparing:
            data = self.prepare(row.data, lambda command: commands.run(command, row.data.folder))
        needed, path = self._weights_needed(row), self.runs_dir / f"{row.name}.begun.json"
        begun = read_json(path) if run_dir.exists() and path.exists() else {}
        same = begun.get("needs", needed) == needed
        if run_dir.exists() and not (same and _goes_on(row, data, run_dir)):
            _move_aside(run_dir)
            begun = {}
        # Training may take hours, in which the checkout may change, and it may be resumed later.
        commits = list(dict.fromkeys([*begun.get("commits", []), commit()]))
        write_json(path, {"needs": needed, "commits": commits})
        with preparing:
            self._set_translations_aside(row)  # the row's weights will change
        arguments = train_arguments(row, data, run_dir)
        print_note(f"{row.name}: python -m {' '.join(arguments)}")
        training = commands.run(arguments, row.name)
        evaluation, *tests = (
            evaluate(lambda command: commands.run(command, row.name), one, data, run_dir)
            for one in (Evaluation("valid", "valid"), *row.tests)
        )
        for old in (self.result_path(row), *self.results_dir.glob(f"{row.name}.*.txt")):
            if old.exists():  # of an earlier training, whose run is lost or had other options
                _move_aside(old)
        for one in row.tests:
            if one.keeps_lines:
                self._keep_lines(row, one, run_dir)
        result = {
            **identity(row, self._by_name),
            **({"needed_weights": needed} if needed else {}),  # checksums by row
            "label": row.label,
            "curve_name": row.curve,
            "paper": dict(row.paper),
            "bleu": evaluation["bleu"],
            "training": training,
            "evaluation": evaluation,
            "tests": {one.name: found for one, found in zip(row.tests, tests, strict=True)},
            "curve": read_curve(run_dir),
            **provenance(training.pop("hardware")),
            "commit": ", ".join(commits),
            "command": in_words(arguments),
            "jobs": self.jobs,
        }
        write_json(self.result_path(row), result)
        return result

    def _keep_lines(self, row: Row, test: Evaluation, run_dir: Path) -> None:
        lines = (run_dir / "evaluation" / test.name / "hypotheses.txt").read_bytes()
        path = self.lines_path(row, test.split)
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_binary(path) as stream:
            stream.write(lines)


def evaluate(
    run: Callable[[list[str]], dict[str, Any]], evaluation: Evaluation, data: Path, run_dir: Path
) -> dict[str, Any]:
    """Evaluates a run with a command, executed by `run`; leaves out this machine's folders."""
    found = run(evaluate_arguments(evaluation, data, run_dir))
    return {**found, "run_dir": portable(str(run_dir))}


def _has_weights(run_dir: Path) -> bool:
    from seq2seq_memattn.runs.directory import BEST_NAME

    return (run_dir / BEST_NAME).exists()


def _goes_on(row: Row, data: Path, run_dir: Path) -> bool:
    """Whether an existing run fits the row and can resume.

    Training could resume with other options of validation, too, but the best weights so far were
    chosen by the old ones. In a run that took more updates than the row allows, the best weights
    may be from one of the later updates.
    """
    from seq2seq_memattn.data.model_sizes import fit_to_data
    from seq2seq_memattn.runs.checkpoints import CheckpointFolder
    from seq2seq_memattn.runs.directory import CHECKPOINTS_NAME, CONFIG_NAME, check_run

    preset = row.preset(run_dir.parent)
    try:
        model = fit_to_data(preset.model, read_manifest(data), data)
        check_run(run_dir, data, model, preset.training, run_of_first_weights(row, run_dir))
    except ValueError:
        return False
    path = run_dir / CONFIG_NAME
    before = read_json(path)["training"] if path.exists() else {}  # missing if the start was killed
    wanted = preset.training.to_dict()
    same = all(before.get(name, wanted[name]) == wanted[name] for name in VALIDATING)
    last = CheckpointFolder(run_dir / CHECKPOINTS_NAME, keep=1).last_update
    can_resume = last > 0 or not _has_weights(run_dir)
    return same and can_resume and last <= preset.training.num_updates


def _move_aside(path: Path) -> None:
    """Renames a run, or a file or folder made with it, to keep it."""
    number = 1
    while (old := path.with_name(f"{path.name}_before_{number}")).exists():
        number += 1
    path.rename(old)
    print_note(f"{path.name} is kept as {old}")


def _no_figures(study: Study, results: Results, stem: Path) -> dict[str, str]:
    return {}


class Definition(NamedTuple):
    """The contents of a file in `experiments/studies`: names that it defines.

    Names with a default may be missing.

    Fields:
        title: title of the page: the first line of the file's docstring.
        introduction: returns the first text of the page, at a scale. A file may define
            the text `INTRODUCTION` instead, for all scales.
        settings: returns a table of the settings in the paper and here, at a scale, or "".
        tables: returns the tables made from results, in Markdown.
        runs_of: the study with which this one shares runs and results (`RUNS_OF` in the file); by
            default, itself.
        rows: returns the rows at a scale; a study that trains nothing has none.
        chosen: returns the names of the rows to run by default; none means all.
        run: makes the missing results.
        results: returns the existing results, with all measurements.
        draw: draws figures into files whose paths begin with the given one; returns titles by the
            endings of these paths.
        claims: returns the findings of the paper, judged by the results.
    """

    title: str
    introduction: Callable[[Scale], str]
    tables: Callable[[Results], str]
    runs_of: str
    settings: Callable[[Scale], str] = lambda scale: ""
    rows: Callable[[Scale], Sequence[Row]] = lambda scale: ()
    chosen: Callable[[Scale], Sequence[str]] = lambda scale: ()
    run: Callable[[Study], Results] = Study.run
    results: Callable[[Study], Results] = Study.finished
    draw: Callable[[Study, Results, Path], dict[str, str]] = _no_figures
    claims: Callable[[Results], Sequence[Claim]] = lambda results: ()


def study_names() -> list[str]:
    """The names of all studies, from the files of `experiments/studies`."""
    found = (module.name for module in pkgutil.iter_modules(studies.__path__))
    return sorted(name for name in found if not name.startswith("_"))


def load_definition(name: str) -> Definition:
    """Loads the definition of a study from its file.

    Raises:
        ValueError: if there is no study of this name.
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
    """Makes a study at a scale.

    Args:
        name: name of the study.
        scale: "full" is the paper's set-up, "small" fits two CPU cores, "tiny" runs in seconds.
        names: names of the rows to run; ["all"] runs all, an empty list the rows of `chosen`.
        work_dir: folder for runs and data.
        results_dir: folder for results.
        source_dir, jobs: see `Study`.

    Raises:
        ValueError: if a name is not the name of a row.
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
