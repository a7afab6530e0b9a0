import dataclasses
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

from seq2seq_memattn.data.manifest import MANIFEST_NAME
from seq2seq_memattn.model import Seq2Seq
from seq2seq_memattn.runs.checkpoints import CheckpointFolder, write_arrays
from seq2seq_memattn.runs.directory import (
    BEST_NAME,
    CHECKPOINTS_NAME,
    CONFIG_NAME,
    FREE_OPTIONS,
    load_run,
    open_run,
    read_model_config,
    training_lock,
    versions,
)
from tests.errors import refused
from tests.tolerances import as_array
from tests.training.runs import MODEL, TRAINING, damage, make_data


@pytest.fixture
def run_dir(data_dir: Path, tmp_path: Path) -> Path:
    """A new run."""
    directory = tmp_path / "deep" / "run"
    open_run(directory, data_dir, MODEL, TRAINING)
    return directory


def model_of(seed: int) -> Seq2Seq:
    return Seq2Seq(dataclasses.replace(MODEL, seed=seed))


def assert_weights_equal(ours: Seq2Seq, theirs: Seq2Seq) -> None:
    for left, right in zip(ours.weights, theirs.weights, strict=True):
        np.testing.assert_array_equal(as_array(left), as_array(right))


def test_a_run_says_what_it_is_made_of(run_dir: Path, data_dir: Path) -> None:
    config = json.loads((run_dir / CONFIG_NAME).read_text())
    assert config["model"] == MODEL.to_dict()
    assert config["training"] == TRAINING.to_dict()
    assert config["command"] == sys.argv
    assert config["versions"] == versions()
    assert config["versions"]["keras"] == keras.__version__
    assert set(config["versions"]) >= {"python", "seq2seq_memattn", "tensorflow", "numpy"}
    assert sorted(config["data"]) == [
        f"{split}.{side}.txt" for split in ("train", "valid") for side in ("source", "target")
    ]
    manifest = (run_dir / MANIFEST_NAME).read_text()
    assert manifest == (data_dir / MANIFEST_NAME).read_text()


def test_the_same_configuration_goes_on(run_dir: Path, data_dir: Path) -> None:
    open_run(run_dir, data_dir, MODEL, TRAINING)


def test_options_that_leave_the_updates_as_they_are_may_differ(
    run_dir: Path, data_dir: Path
) -> None:
    other = {name: getattr(TRAINING, name) + 1 for name in FREE_OPTIONS - {"teacher"}}
    open_run(run_dir, data_dir, MODEL, dataclasses.replace(TRAINING, **other))
    config = json.loads((run_dir / CONFIG_NAME).read_text())
    assert config["training"]["patience"] == TRAINING.patience + 1


def test_every_other_option_is_named_when_it_differs(run_dir: Path, data_dir: Path) -> None:
    before = (run_dir / CONFIG_NAME).read_text()
    model = dataclasses.replace(MODEL, attention="bahdanau", dropout=0.5)
    training = dataclasses.replace(TRAINING, seed=7, patience=9)
    with pytest.raises(ValueError) as raised:
        open_run(run_dir, data_dir, model, training)
    assert str(raised.value) == (
        f"{run_dir / CONFIG_NAME}: a run with another configuration: "
        "attention was 'k_memory:3', is 'bahdanau'; dropout was 0.2, is 0.5; seed was 0, is 7"
    )
    assert (run_dir / CONFIG_NAME).read_text() == before


def test_a_run_from_before_an_option_goes_on_with_its_default(
    run_dir: Path, data_dir: Path
) -> None:
    path = run_dir / CONFIG_NAME
    config = json.loads(path.read_text())
    del config["training"]["batch_tokens"]
    path.write_text(json.dumps(config))
    open_run(run_dir, data_dir, MODEL, TRAINING)
    path.write_text(json.dumps(config))
    with pytest.raises(ValueError, match="another configuration: batch_tokens was 0, is 90$"):
        open_run(run_dir, data_dir, MODEL, dataclasses.replace(TRAINING, batch_tokens=90))


@pytest.mark.parametrize("name", ["valid_examples", "beam_size"])
def test_the_best_weights_are_chosen_by_the_same_validation_to_the_end(
    run_dir: Path, data_dir: Path, name: str
) -> None:
    other = dataclasses.replace(TRAINING, **{name: 99})
    message = refused(open_run, run_dir, data_dir, MODEL, other)
    assert message.endswith(f"{name} was {getattr(TRAINING, name)}, is 99")


def test_where_the_learning_rate_hangs_on_validations_they_come_equally_often(
    data_dir: Path, tmp_path: Path
) -> None:
    plateau = dataclasses.replace(TRAINING, schedule="plateau")
    open_run(tmp_path, data_dir, MODEL, plateau)
    open_run(tmp_path, data_dir, MODEL, dataclasses.replace(plateau, num_updates=99, patience=9))
    other = dataclasses.replace(plateau, validate_every=99)
    assert refused(open_run, tmp_path, data_dir, MODEL, other).endswith("is 99")


def test_with_balanced_slots_a_batch_may_not_be_divided_differently(
    data_dir: Path, tmp_path: Path
) -> None:
    for weight, name in ((0.0, "free"), (0.5, "fixed")):
        training = dataclasses.replace(TRAINING, balance_weight=weight)
        other = dataclasses.replace(training, accumulate=2)
        open_run(tmp_path / name, data_dir, MODEL, training)
        if weight:
            message = refused(open_run, tmp_path / name, data_dir, MODEL, other)
            assert message.endswith("accumulate was 1, is 2")
        else:
            open_run(tmp_path / name, data_dir, MODEL, other)


def test_a_run_that_is_older_than_an_option_had_its_default(run_dir: Path, data_dir: Path) -> None:
    config = json.loads((run_dir / CONFIG_NAME).read_text())
    del config["training"]["label_smoothing"], config["model"]["tied_embeddings"], config["start"]
    (run_dir / CONFIG_NAME).write_text(json.dumps(config))
    with pytest.raises(ValueError, match="label_smoothing was 0.0, is 0.1"):
        open_run(run_dir, data_dir, MODEL, dataclasses.replace(TRAINING, label_smoothing=0.1))
    open_run(run_dir, data_dir, MODEL, TRAINING)


def test_another_first_run_is_named(data_dir: Path, tmp_path: Path) -> None:
    open_run(tmp_path / "run", data_dir, MODEL, TRAINING, init_from=tmp_path / "first")
    open_run(tmp_path / "run", data_dir, MODEL, TRAINING, init_from=tmp_path / "first")
    for other, name in ((tmp_path / "second", f"'{tmp_path / 'second'}'"), (None, "None")):
        message = f"init_from was '{tmp_path / 'first'}', is {name}$"
        with pytest.raises(ValueError, match=message):
            open_run(tmp_path / "run", data_dir, MODEL, TRAINING, init_from=other)


def test_options_without_effect_that_were_once_accepted_get_their_defaults(
    run_dir: Path, data_dir: Path
) -> None:
    config = json.loads((run_dir / CONFIG_NAME).read_text())
    config["model"] |= {"local_sigma": 2.0, "threshold": 0.5, "bridge_activation": "tanh"}
    (run_dir / CONFIG_NAME).write_text(json.dumps(config))
    assert read_model_config(run_dir) == MODEL
    open_run(run_dir, data_dir, MODEL, TRAINING)
    assert Seq2Seq(config["model"]).config == MODEL


def test_a_first_run_that_has_moved_is_known_by_its_weights(data_dir: Path, tmp_path: Path) -> None:
    first, moved, run_dir = (tmp_path / name for name in ("first", "moved", "run"))
    first.mkdir()
    (first / "best.npz").write_bytes(b"weights")
    open_run(run_dir, data_dir, MODEL, TRAINING, init_from=first)
    first.rename(moved)
    open_run(run_dir, data_dir, MODEL, TRAINING, init_from=moved)
    (moved / "best.npz").write_bytes(b"others")  # it has been trained on, or made anew
    open_run(run_dir, data_dir, MODEL, TRAINING, init_from=moved)
    with pytest.raises(ValueError, match=f"init_from was '{moved}', is '{first}'"):
        open_run(run_dir, data_dir, MODEL, TRAINING, init_from=first)


def test_the_record_of_the_first_weights_stays_once_there_is_a_checkpoint(
    data_dir: Path, tmp_path: Path
) -> None:
    first, run_dir = tmp_path / "first", tmp_path / "run"
    first.mkdir()
    (first / "best.npz").write_bytes(b"weights")
    open_run(run_dir, data_dir, MODEL, TRAINING, init_from=first)
    recorded = json.loads((run_dir / CONFIG_NAME).read_text())["start"]
    folder = run_dir / "checkpoints"
    folder.mkdir(exist_ok=True)
    (folder / "checkpoint-000000001.npz").touch()
    (first / "best.npz").write_bytes(b"others")
    open_run(run_dir, data_dir, MODEL, TRAINING, init_from=first)
    assert json.loads((run_dir / CONFIG_NAME).read_text())["start"] == recorded


def test_one_embedding_for_two_vocabularies_is_refused(data_dir: Path, tmp_path: Path) -> None:
    model = dataclasses.replace(MODEL, tied_embeddings="all", mixing_units=5)
    open_run(tmp_path / "joint", data_dir, model, TRAINING)
    manifest = json.loads((data_dir / MANIFEST_NAME).read_text())
    manifest["target_vocabulary"]["symbols"].reverse()
    other = tmp_path / "other"
    shutil.copytree(data_dir, other)
    (other / MANIFEST_NAME).write_text(json.dumps(manifest))
    with pytest.raises(ValueError, match=f"{other}: expected one joint vocabulary.*; got two"):
        open_run(tmp_path / "run", other, model, TRAINING)
    assert not (tmp_path / "run").exists()


def test_other_data_is_named(run_dir: Path, data_dir: Path, tmp_path: Path) -> None:
    other = make_data(tmp_path / "other", seed=1)
    with pytest.raises(ValueError, match=f"{run_dir}: a run on other data than those of {other};"):
        open_run(run_dir, other, MODEL, TRAINING)


def test_data_with_fewer_files_is_other_data(run_dir: Path, data_dir: Path, tmp_path: Path) -> None:
    fewer = tmp_path / "fewer"
    shutil.copytree(data_dir, fewer)
    manifest = json.loads((data_dir / MANIFEST_NAME).read_text())
    del manifest["splits"]["valid"]
    (fewer / MANIFEST_NAME).write_text(json.dumps(manifest))
    with pytest.raises(ValueError, match=f"{run_dir}: a run on other data than those of {fewer};"):
        open_run(run_dir, fewer, MODEL, TRAINING)


def test_one_more_test_set_is_no_other_data(run_dir: Path, data_dir: Path, tmp_path: Path) -> None:
    more = tmp_path / "more"
    shutil.copytree(data_dir, more)
    manifest = json.loads((data_dir / MANIFEST_NAME).read_text())
    test = json.loads(json.dumps(manifest["splits"]["valid"]))
    for file in test["files"]:
        name = file["path"].replace("valid", "test")
        shutil.copy(more / file["path"], more / name)
        file["path"] = name
    manifest["splits"]["test"] = test
    (more / MANIFEST_NAME).write_text(json.dumps(manifest))
    open_run(run_dir, more, MODEL, TRAINING)
    open_run(run_dir, data_dir, MODEL, TRAINING)


@pytest.mark.parametrize(
    "changed",
    [
        {"target_vocabulary": {"kind": "symbols", "symbols": ["1", "0"]}},
        {"text_form": {"is_tokenised": True}},
    ],
)
def test_the_same_text_in_other_tokens_is_other_data(
    changed: dict[str, Any], run_dir: Path, data_dir: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    shutil.copytree(data_dir, other)
    manifest = json.loads((data_dir / MANIFEST_NAME).read_text())
    (other / MANIFEST_NAME).write_text(json.dumps(manifest | changed))
    with pytest.raises(ValueError, match=f"{run_dir}: a run on other data than those of {other};"):
        open_run(run_dir, other, MODEL, TRAINING)


def test_a_directory_of_something_else_is_refused_and_left_alone(
    tmp_path: Path, data_dir: Path
) -> None:
    for name in ("thesis.txt", ".notes.tmp"):
        (tmp_path / name).write_text("mine")
    with pytest.raises(ValueError, match=r"expected a run or an empty directory; it has other"):
        open_run(tmp_path, data_dir, MODEL, TRAINING)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".notes.tmp", "thesis.txt"]


def test_a_start_that_was_killed_at_once_does_not_stand_in_the_way(
    tmp_path: Path, data_dir: Path
) -> None:
    (tmp_path / f".{CONFIG_NAME}.9999999.tmp").write_text("{")
    open_run(tmp_path, data_dir, MODEL, TRAINING)
    assert sorted(path.name for path in tmp_path.iterdir()) == [CONFIG_NAME, MANIFEST_NAME]
    (tmp_path / MANIFEST_NAME).unlink()  # killed between the two files
    open_run(tmp_path, data_dir, MODEL, TRAINING)
    assert (tmp_path / MANIFEST_NAME).exists()


def test_what_a_killed_write_left_is_removed(run_dir: Path, data_dir: Path) -> None:
    (run_dir / CHECKPOINTS_NAME).mkdir()
    leftovers = [
        run_dir / f".{BEST_NAME}.9999999.tmp",
        run_dir / CHECKPOINTS_NAME / f".checkpoint-000000007.npz.{os.getpid()}.tmp",
    ]
    kept = run_dir / f".translations.txt.{os.getppid()}.tmp"  # another command still writes it
    for path in (*leftovers, kept):
        path.write_text("half")
    others = [run_dir / name for name in (".sync.best.npz.tmp", ".notes.20240101123456.tmp")]
    for path in others:
        path.write_text("another program's")
    (run_dir / ".folder.tmp").mkdir()
    open_run(run_dir, data_dir, MODEL, TRAINING)
    assert not any(path.exists() for path in leftovers)
    assert all(path.exists() for path in (kept, *others))


def test_what_another_training_is_writing_is_left_alone(run_dir: Path, data_dir: Path) -> None:
    half = run_dir / f".{BEST_NAME}.9999999.tmp"
    half.write_text("half")
    with training_lock(run_dir):
        with pytest.raises(ValueError, match="run: another process is training this run"):
            open_run(run_dir, data_dir, MODEL, TRAINING)
        assert half.exists()
    open_run(run_dir, data_dir, MODEL, TRAINING)
    assert not half.exists()


@pytest.mark.parametrize(("text", "said"), [("{", "JSON"), ("[]", "the configuration of a run")])
def test_a_damaged_configuration_is_named(
    text: str, said: str, run_dir: Path, data_dir: Path
) -> None:
    (run_dir / CONFIG_NAME).write_text(text)
    for read in (lambda: open_run(run_dir, data_dir, MODEL, TRAINING), lambda: load_run(run_dir)):
        with pytest.raises(ValueError, match=f"{CONFIG_NAME}: expected {said}"):
            read()


# Loading


def test_the_best_weights_are_loaded(run_dir: Path) -> None:
    saved = model_of(seed=5)
    record = {"update": 30, "bleu": 97.5}
    write_arrays(run_dir / BEST_NAME, saved.weights, record)
    save_checkpoint(run_dir, 40, model_of(seed=6))
    run = load_run(run_dir)
    assert_weights_equal(run.model, saved)
    assert (run.update, run.record, run.directory) == (30, record, run_dir)
    assert run.source_vocabulary.encode("3 0") == run.target_vocabulary.encode("3 0") == [6, 3]


def test_without_a_validation_the_last_weights_are_loaded(run_dir: Path) -> None:
    saved = model_of(seed=5)
    save_checkpoint(run_dir, 10, model_of(seed=6))
    save_checkpoint(run_dir, 20, saved)
    being_written = run_dir / CHECKPOINTS_NAME / ".checkpoint-000000030.npz.123.tmp"
    being_written.write_text("half")
    run = load_run(run_dir)
    assert_weights_equal(run.model, saved)
    assert run.update == 20
    assert being_written.exists()  # a training may be writing it


def save_checkpoint(run_dir: Path, update: int, model: Seq2Seq) -> None:
    folder = CheckpointFolder(run_dir / CHECKPOINTS_NAME, keep=9)
    folder.save(update, model.variables, {})


def test_weights_are_loaded_by_name(run_dir: Path) -> None:
    models = {name: model_of(seed) for seed, name in enumerate(("best", "older", "newest", "mean"))}
    write_arrays(run_dir / BEST_NAME, models["best"].weights, {"update": 10})
    save_checkpoint(run_dir, 10, models["older"])
    save_checkpoint(run_dir, 20, models["newest"])
    write_arrays(run_dir / "mean.npz", models["mean"].weights, {"update": 20})
    names = {
        "best": "best",
        "best.npz": "best",
        "latest": "newest",
        "checkpoint-000000010.npz": "older",
        "mean.npz": "mean",
    }
    for checkpoint, name in names.items():
        assert_weights_equal(load_run(run_dir, checkpoint).model, models[name])
    message = (
        f"{run_dir}: expected best, latest or one of its files of weights "
        r"\(checkpoint-000000010.npz, checkpoint-000000020.npz, best.npz, mean.npz\); got 'ten'"
    )
    with pytest.raises(ValueError, match=message):
        load_run(run_dir, "ten")


def test_damaged_newest_weights_are_passed_over_and_named(run_dir: Path) -> None:
    saved = model_of(seed=5)
    save_checkpoint(run_dir, 10, saved)
    save_checkpoint(run_dir, 20, model_of(seed=6))
    damage(run_dir / CHECKPOINTS_NAME / "checkpoint-000000020.npz", "flipped")
    run = load_run(run_dir, "latest")
    assert_weights_equal(run.model, saved)
    (problem,) = run.problems
    assert problem.startswith(f"{run_dir / CHECKPOINTS_NAME / 'checkpoint-000000020.npz'}: damaged")


def test_a_directory_that_is_no_run_is_refused(tmp_path: Path) -> None:
    message = f"{tmp_path}: expected a run directory; it has no {CONFIG_NAME}"
    with pytest.raises(ValueError, match=message):
        load_run(tmp_path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{}", "expected the configuration of a run"),
        ('["model"]', "expected the configuration of a run"),
        ('{"model": {"depth": 3}}', "Unknown option 'depth' for ModelConfig."),
    ],
)
def test_a_configuration_of_something_else_is_named(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / CONFIG_NAME).write_text(text)
    with pytest.raises(ValueError) as raised:
        load_run(tmp_path)
    assert str(raised.value) == f"{tmp_path / CONFIG_NAME}: {said}"


def test_a_run_without_weights_is_refused(run_dir: Path) -> None:
    with pytest.raises(ValueError, match=f"{run_dir}: the run has no weights yet"):
        load_run(run_dir)


def test_damaged_best_weights_are_named_and_the_others_beside_them(run_dir: Path) -> None:
    save_checkpoint(run_dir, 10, model_of(seed=5))
    (run_dir / BEST_NAME).write_bytes(b"PK\x03\x04 and no more")
    others = "other checkpoints of the run: latest, checkpoint-000000010.npz"
    with pytest.raises(ValueError, match=f"{BEST_NAME}: damaged checkpoint.*; {others}$"):
        load_run(run_dir)


def test_every_option_is_either_free_or_checked(run_dir: Path, data_dir: Path) -> None:
    changed: dict[str, Any] = {
        "precision": "float64",
        "jit_compile": True,
        "label_smoothing": 0.3,
        "optimizer": "sgd",
        "schedule": "exponential",
        "decay_rate": 0.3,
        "decay_staircase": True,
        "decay_patience": 4,
        "validation_bleu": "smoothed",
    }
    needed: dict[str, dict[str, Any]] = {
        "context_weight": {"teacher": "run"},
        "alignment_weight": {"teacher": "run"},
    }
    for field in dataclasses.fields(TRAINING):
        if field.name == "teacher":  # changes only with a weight; see `needed`
            continue
        value = changed.get(field.name, 3)
        others = needed.get(field.name, {})
        training = dataclasses.replace(TRAINING, **{field.name: value}, **others)
        if field.name in FREE_OPTIONS:
            open_run(run_dir, data_dir, MODEL, training)
        elif value != getattr(TRAINING, field.name):
            with pytest.raises(ValueError, match=f"{field.name} was"):
                open_run(run_dir, data_dir, MODEL, training)


def test_a_threshold_replaces_that_of_flexible_attention_alone(
    data_dir: Path, tmp_path: Path
) -> None:
    for attention, threshold in (("flexible", 2.0), ("bahdanau", 0.0)):
        config = dataclasses.replace(MODEL, attention=attention, threshold=threshold)
        open_run(tmp_path / attention, data_dir, config, TRAINING)
        weights = Seq2Seq(config).weights
        write_arrays(tmp_path / attention / BEST_NAME, weights, {"update": 1})

    def threshold_of(given: float | None) -> float | None:
        return load_run(tmp_path / "flexible", threshold=given).model.cell.attention.threshold

    assert [threshold_of(given) for given in (None, 0.5, 0.0)] == [2.0, 0.5, None]
    with pytest.raises(ValueError, match="expected flexible attention.*it is bahdanau"):
        load_run(tmp_path / "bahdanau", threshold=0.5)
