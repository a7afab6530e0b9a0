import dataclasses
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from experiments.reproduction import study as studies
from experiments.reproduction.jobs import Commands
from experiments.reproduction.results import portable, read_json
from experiments.reproduction.rows import DataSource, Evaluation, Row, identity, is_result_of
from experiments.reproduction.study import Study, load_definition, study_names
from seq2seq_memattn.data.manifest import read_manifest, sha256_of
from seq2seq_memattn.data.model_sizes import fit_to_data
from seq2seq_memattn.runs.checkpoints import write_arrays
from seq2seq_memattn.runs.directory import open_run
from tests.errors import refused
from tests.training.runs import make_data

ROW = Row(
    name="row",
    config="copy_20_k4",
    options={"learning_rate": 0.5, "encoder_score": "sigmoid"},
    data=DataSource("copy", ("data_prep.copy_task", "--max_length=20")),
    label="K=4",
    curve="k_memory:4",
    paper={"bleu": 99.0},
    length=20,
)


def test_a_configuration_is_the_preset_with_the_options() -> None:
    made = identity(dataclasses.replace(ROW, options={**ROW.options, "seed": 3}))["configuration"]
    model, training = made["model"], made["training"]
    assert (model["attention"], model["encoder_score"]) == ("k_memory:4", "sigmoid")
    assert (training["learning_rate"], training["batch_size"]) == (0.5, 128)
    assert (model["seed"], training["seed"]) == (3, 3)  # one flag sets both
    with pytest.raises(ValueError, match="Unknown option 'hops'"):
        identity(dataclasses.replace(ROW, options={"hops": 3}))


def test_a_result_belongs_to_a_row_that_was_made_the_same_way() -> None:
    found = json.loads(json.dumps(identity(ROW)))
    assert is_result_of(ROW, found)
    later = {**ROW.options, "label_smoothing": 0.0}  # an option with its default value
    assert is_result_of(dataclasses.replace(ROW, options=later), found)
    cut = {**ROW.options, "stop_at_bleu": 99.0, "checkpoint_minutes": 1.0}
    assert is_result_of(dataclasses.replace(ROW, options=cut), found)
    for changed in (
        dataclasses.replace(ROW, options={}),
        dataclasses.replace(ROW, options={**ROW.options, "num_updates": 3}),
        dataclasses.replace(ROW, config="copy_20_k16"),
        dataclasses.replace(ROW, length=50),
        dataclasses.replace(ROW, data=DataSource("copy", ("data_prep.copy_task",))),
        dataclasses.replace(ROW, tests=(Evaluation("test", "valid"),)),
    ):
        assert not is_result_of(changed, found)
    tested = dataclasses.replace(ROW, tests=(Evaluation("test", "valid", ("--beam_size=1",)),))
    found = json.loads(json.dumps(identity(tested)))
    assert is_result_of(tested, found)
    flags = (Evaluation("test", "valid", ("--beam_size=2",)),)
    assert not is_result_of(dataclasses.replace(tested, tests=flags), found)
    del found["evaluations"]  # a result from before evaluations were recorded
    assert is_result_of(tested, found)


def test_options_that_came_later_had_their_defaults() -> None:
    found = json.loads(json.dumps(identity(ROW)))
    del found["configuration"]["training"]["label_smoothing"]
    assert is_result_of(ROW, found)
    smoothed = dataclasses.replace(ROW, options={**ROW.options, "label_smoothing": 0.1})
    assert not is_result_of(smoothed, found)
    found["configuration"]["model"]["hops"] = 3  # an option that no longer exists
    assert not is_result_of(ROW, found)


def test_a_row_with_other_options_is_made_again_and_its_run_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands: list[list[str]] = []
    rows: list[Row] = []

    def run(self: Commands, arguments: list[str], name: str) -> dict[str, Any]:
        commands.append(arguments)
        run_dir, data_dir = tmp_path / "runs" / "row", tmp_path / "data" / "copy"
        if arguments[0] == "data_prep.copy_task" and not data_dir.exists():
            make_data(data_dir)
        if arguments[0] == "experiments.train":
            preset = rows[-1].preset()
            model = fit_to_data(preset.model, read_manifest(data_dir), data_dir)
            open_run(run_dir, data_dir, model, preset.training)  # refuses another row's run
            (run_dir / "metrics.jsonl").write_text(f"{len(commands)}\n")
            checkpoint = (
                run_dir / "checkpoints" / f"checkpoint-{preset.training.num_updates:09}.npz"
            )
            checkpoint.parent.mkdir(exist_ok=True)
            checkpoint.touch()
        return {"bleu": 1.0, "hardware": "some"}

    monkeypatch.setattr(Commands, "run", run)

    def run_study(row: Row) -> None:
        rows.append(row)
        Study([row], tmp_path / "runs", tmp_path / "results", tmp_path / "data").run()

    run_study(ROW)
    assert [command[0] for command in commands] == [
        "data_prep.copy_task",
        "experiments.train",
        "experiments.evaluate",
    ]
    run_study(ROW)
    assert len(commands) == 3
    for count, rate in enumerate((0.25, 0.125), 1):
        run_study(dataclasses.replace(ROW, options={"learning_rate": rate}))
        assert len(commands) == 3 + 3 * count
        assert (tmp_path / "runs" / f"row_before_{count}").is_dir()
    assert (tmp_path / "runs" / "row_before_1" / "metrics.jsonl").read_text() == "2\n"
    # With a larger number of updates, the same run continues.
    longer = {"learning_rate": 0.125, "num_updates": ROW.preset().training.num_updates + 7}
    run_study(dataclasses.replace(ROW, options=longer))
    assert len(commands) == 12
    assert not (tmp_path / "runs" / "row_before_3").exists()
    # With fewer updates or another validation, the best weights may differ: the run starts anew.
    for count, changed in enumerate(({"num_updates": 7}, {"num_updates": 7, "beam_size": 3}), 3):
        run_study(dataclasses.replace(ROW, options={**longer, **changed}))
        assert (tmp_path / "runs" / f"row_before_{count}").is_dir()
    # A start that was killed before it wrote its configuration goes on.
    (tmp_path / "results" / "row.json").unlink()
    shutil.rmtree(tmp_path / "runs" / "row")
    (tmp_path / "runs" / "row").mkdir()
    run_study(rows[-1])
    assert not (tmp_path / "runs" / "row_before_5").exists()


def test_a_resumed_training_names_all_its_commits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend(tmp_path, monkeypatch)
    run = Commands.run

    def interrupted(self: Commands, arguments: list[str], name: str) -> dict[str, Any]:
        if arguments[0] == "experiments.evaluate":
            raise KeyboardInterrupt
        return run(self, arguments, name)

    monkeypatch.setattr(studies, "_goes_on", lambda *_: True)
    of = Study([ROW], tmp_path / "runs", tmp_path / "results", tmp_path / "data")
    monkeypatch.setattr(Commands, "run", interrupted)
    for commit in ("first", "second", "second"):
        monkeypatch.setattr(studies, "commit", lambda commit=commit: commit)
        with pytest.raises(KeyboardInterrupt):
            of.run()
    monkeypatch.setattr(Commands, "run", run)
    assert of.run()[0]["commit"] == "first, second"
    shutil.rmtree(tmp_path / "runs" / "row")  # a lost run begins again
    of.result_path(ROW).unlink()
    assert of.run()[0]["commit"] == "second"


def pretend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Pretends to run commands; returns the list to which they are added."""
    commands: list[list[str]] = []

    def run(self: Commands, arguments: list[str], name: str) -> dict[str, Any]:
        commands.append(arguments)
        if arguments[0] == "experiments.train":
            run_dir = tmp_path / "runs" / name
            run_dir.mkdir(parents=True, exist_ok=True)
            (run_dir / "metrics.jsonl").write_text("1\n")
            write_best(run_dir, arguments=arguments)
        if arguments[0] == "experiments.translate":
            output = Path(arguments[-1].partition("=")[2])
            output.parent.mkdir(exist_ok=True)
            output.write_text("")
        return {"bleu": 1.0, "best_update": 9, "best_bleu": 2.0, "hardware": "some"}

    monkeypatch.setattr(Commands, "run", run)
    return commands


def write_best(run_dir: Path, **more: Any) -> None:
    write_arrays(run_dir / "best.npz", [], {"update": 9, "bleu": 2.0, **more})


def trainings(commands: list[list[str]]) -> list[list[str]]:
    return [command for command in commands if command[0] == "experiments.train"]


def names_of_trained(commands: list[list[str]]) -> list[str]:
    """The names of the runs that are trained, in order."""
    return [Path(command[3].partition("=")[2]).name for command in trainings(commands)]


def test_a_row_that_begins_with_another_comes_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands = pretend(tmp_path, monkeypatch)
    tuned = dataclasses.replace(ROW, name="tuned", init_from="row")
    where = tmp_path / "runs", tmp_path / "results", tmp_path / "data"
    found = Study([tuned, ROW], *where, jobs=2, chosen=["tuned"]).run()
    trained = trainings(commands)
    assert [result["name"] for result in found] == ["tuned"]
    run_dirs = [f"--run_dir={tmp_path / 'runs' / name}" for name in ("row", "tuned")]
    assert [arguments[3] for arguments in trained] == run_dirs
    assert not any(argument.startswith("--init_from") for argument in trained[0])
    assert trained[1][-1] == f"--init_from={tmp_path / 'runs' / 'row'}"
    assert is_result_of(tuned, found[0])
    other = dataclasses.replace(ROW, options={**ROW.options, "seed": 3})
    assert is_result_of(tuned, found[0], {"row": ROW})
    assert not is_result_of(tuned, found[0], {"row": other})  # begins with other weights
    assert not is_result_of(dataclasses.replace(tuned, init_from=""), found[0])
    assert is_result_of(ROW, {k: v for k, v in identity(ROW).items() if k != "init_from"})


def test_a_teacher_is_trained_first_and_named_by_its_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands = pretend(tmp_path, monkeypatch)
    weights = {**ROW.options, "alignment_weight": 0.5}
    other = dataclasses.replace(ROW, name="other", init_from="taught")
    taught = dataclasses.replace(ROW, name="taught", teacher="row", options=weights)
    where = tmp_path / "runs", tmp_path / "results", tmp_path / "data"
    found = Study([other, taught, ROW], *where, chosen=["other"]).run()
    trained = trainings(commands)
    assert [result["name"] for result in found] == ["other"]
    assert names_of_trained(commands) == ["row", "taught", "other"]
    teacher = tmp_path / "runs" / "row"
    assert trained[1][-1] == f"--teacher={teacher}"
    assert taught.preset(tmp_path / "runs").training.teacher == str(teacher)
    circle = dataclasses.replace(ROW, name="circle", init_from="circle")
    assert refused(Study([circle], *where).run) == "rows that need each other: circle"
    recorded = read_json(tmp_path / "results" / "taught.json")
    assert recorded["configuration"]["training"]["teacher"] == "row"
    assert is_result_of(taught, recorded)
    untaught = dataclasses.replace(taught, teacher="", options=ROW.options)
    assert not is_result_of(untaught, recorded)


def test_a_finished_row_is_trained_again_if_another_needs_its_lost_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands = pretend(tmp_path, monkeypatch)
    tuned = dataclasses.replace(ROW, name="tuned", init_from="row")
    where = tmp_path / "runs", tmp_path / "results", tmp_path / "data"
    Study([ROW], *where).run()
    (tmp_path / "runs" / "row" / "best.npz").unlink()
    (found,) = Study([tuned, ROW], *where, chosen=["tuned"]).run()
    assert names_of_trained(commands) == ["row", "row", "tuned"]
    # The result of the lost run is kept aside, and the new one says whose weights it began with.
    assert [path.name for path in tmp_path.glob("results/*_before_1")] == ["row.json_before_1"]
    assert found["needed_weights"] == {"row": sha256_of(tmp_path / "runs" / "row" / "best.npz")}
    Study([tuned, ROW], *where).run()
    again = dataclasses.replace(ROW, name="again", init_from="row")
    Study([again, ROW], *where).run()
    assert names_of_trained(commands)[3:] == ["again"]
    write_best(tmp_path / "runs" / "row", update=5)  # training it again was interrupted
    Study([dataclasses.replace(again, name="third"), ROW], *where).run()
    assert names_of_trained(commands)[4:] == ["row", "third"]


def test_a_row_that_trains_on_makes_what_came_from_its_weights_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands = pretend(tmp_path, monkeypatch)
    monkeypatch.setattr(studies, "_goes_on", lambda *given: True)
    data = DataSource("translated", ("prepare", "--train_source=a"), "b", translated_by="row")
    tuned = dataclasses.replace(ROW, name="tuned", init_from="row")
    student = dataclasses.replace(ROW, name="student", data=data)
    where = tmp_path / "runs", tmp_path / "results", tmp_path / "data", tmp_path
    Study([tuned, student, ROW], *where).run()
    longer = dataclasses.replace(ROW, options={**ROW.options, "num_updates": 7})
    Study([tuned, student, longer], *where).run()
    assert sorted(names_of_trained(commands)) == sorted(2 * ["row", "tuned", "student"])
    kept = [path.name for path in tmp_path.glob("*/*_before_1") if path.parent.name != "results"]
    assert sorted(kept) == ["student_before_1", "translated.gz_before_1", "tuned_before_1"]
    assert (tmp_path / "runs" / "row").is_dir()


@pytest.mark.parametrize("need", ["init_from", "teacher"])
def test_an_interrupted_row_goes_on_only_if_the_row_it_needs_is_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, need: str
) -> None:
    pretend(tmp_path, monkeypatch)
    monkeypatch.setattr(studies, "_goes_on", lambda *given: True)
    options = {**ROW.options, **({"context_weight": 1.0} if need == "teacher" else {})}
    row = dataclasses.replace(ROW, name="tuned", options=options, **{need: "row"})
    where = tmp_path / "runs", tmp_path / "results", tmp_path / "data"
    for weights, aside in ((None, []), ("others", ["tuned_before_1"])):
        Study([row, ROW], *where).run()
        (tmp_path / "results" / "tuned.json").unlink()
        if weights:
            write_best(tmp_path / "runs" / "row", arguments=weights)
        Study([row, ROW], *where).run()
        assert [path.name for path in tmp_path.glob("runs/*_before_1")] == aside


def test_translations_by_a_row_take_the_place_of_targets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands = pretend(tmp_path, monkeypatch)
    command = ("prepare", "--train_source={corpus}/a.gz", "--train_target={translations}")
    data = DataSource("translated", command, "corpus", translated_by="row")
    student = dataclasses.replace(ROW, name="student", data=data)
    where = tmp_path / "runs", tmp_path / "results", tmp_path / "data"
    with pytest.raises(ValueError, match="--source_dir: needed for translated"):
        Study([student], *where).prepare(data, print)
    for _ in range(2):
        Study([student, ROW], *where, tmp_path / "corpora", chosen=["student"]).run()
    names = [arguments[0] for arguments in commands]
    assert names == [
        *("data_prep.copy_task", "experiments.train", "experiments.evaluate"),
        "data_prep.copy_task",  # again, because it left no folder
        *("experiments.translate", "prepare", "experiments.train", "experiments.evaluate"),
    ]
    source, made = tmp_path / "corpora" / "corpus" / "a.gz", tmp_path / "data" / "translated"
    assert commands[4][1:] == [
        f"--run_dir={tmp_path / 'runs' / 'row'}",
        f"--input={source}",
        f"--output={made}.gz",
    ]
    assert commands[5][1:] == [
        f"--train_source={source}",
        f"--train_target={made}.gz",
        f"--output_dir={made}",
    ]
    assert read_json(tmp_path / "results" / "student.json")["data"] == list(command)


def test_corpora_are_taken_from_the_folder_of_their_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands: list[list[str]] = []

    def run(self: Commands, arguments: list[str], name: str) -> dict[str, Any]:
        commands.append(arguments)
        if arguments[0] == "experiments.train":
            raise ValueError("enough")
        return {}

    monkeypatch.setattr(Commands, "run", run)
    data = DataSource("multi30k_en_de", ("data_prep.multi30k",), "multi30k")
    row = dataclasses.replace(ROW, data=data)
    where = tmp_path / "runs", tmp_path / "results", tmp_path / "data"
    for source_dir in (tmp_path / "corpora", None):
        with pytest.raises(ValueError, match="enough"):
            Study([row], *where, source_dir).run()
    first, second = (command for command in commands if command[0] == "data_prep.multi30k")
    output = f"--output_dir={tmp_path / 'data' / 'multi30k_en_de'}"
    assert first[1:] == [f"--source_dir={tmp_path / 'corpora' / 'multi30k'}", output]
    assert second[1:] == [output]


def test_a_damaged_result_is_named(tmp_path: Path) -> None:
    (tmp_path / "row.json").write_text('{"bleu":')
    with pytest.raises(ValueError, match=r"row\.json: expected JSON"):
        read_json(tmp_path / "row.json")


@pytest.mark.parametrize(
    ("argument", "expected"),
    [
        ("--source=/a/b/c.gz,/a/d.gz", "--source=c.gz,d.gz"),
        ("--run_dir=runs/a", "--run_dir=runs/a"),
        ("--text=a, b", "--text=a, b"),
        ("--text=", "--text="),
        ("/a/b", "b"),
        ("train", "train"),
    ],
)
def test_commands_are_recorded_without_folders_of_the_machine(argument: str, expected: str) -> None:
    assert portable(argument) == expected


def test_every_file_of_studies_is_one_and_says_what_it_is() -> None:
    assert {"table1", "figure3a", "flexible_table3", "decoding"} <= set(study_names())
    titles = [load_definition(name).title for name in study_names()]
    assert all(titles) and len(set(titles)) == len(titles)
    with pytest.raises(ValueError, match="expected one of ambiguities, .*; got '_curves'"):
        load_definition("_curves")
