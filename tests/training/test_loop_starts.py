"""How a run begins: locks, learning rates, and another run's weights."""

import dataclasses
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seq2seq_memattn.runs.directory import load_run, training_lock
from seq2seq_memattn.training import start
from seq2seq_memattn.training.distributed.cluster import Cluster
from seq2seq_memattn.training.loop import Trainer, TrainingResult
from seq2seq_memattn.training.measurements import UpdateResult
from tests.training.runs import (
    MODEL,
    NUM_UPDATES,
    TRAINING,
    arrays_of,
    checkpoints,
    copy_run,
    metrics,
    train,
    trainer,
)
from tests.training.scripts import Scripted


def test_a_run_is_locked_while_it_is_trained(scripted: Scripted, tmp_path: Path) -> None:
    made, locked = scripted(num_updates=3), []
    updater = made.updater

    def noted(*arguments: Any) -> UpdateResult:
        with pytest.raises(ValueError, match="another process is training this run"):
            made.run()
        locked.append(True)
        return updater(*arguments)

    made.updater = noted
    assert made.run().update == 3 == len(locked)
    with training_lock(tmp_path / "run"):
        pass  # the lock is free again


@pytest.mark.slow
def test_a_trainer_that_was_overtaken_does_not_write_over_what_is_newer(
    finished: tuple[Path, TrainingResult], data_dir: Path, tmp_path: Path
) -> None:
    run_dir = copy_run(finished[0], tmp_path / "run")
    for path in checkpoints(run_dir)[1:]:
        path.unlink()
    late = trainer(data_dir, run_dir)
    train(data_dir, run_dir)
    before = {path: path.read_bytes() for path in checkpoints(run_dir)}
    with pytest.raises(ValueError, match="run: another process has trained this run since"):
        late.run()
    assert {path: path.read_bytes() for path in checkpoints(run_dir)} == before


# The learning rate


SCHEDULE: dict[str, Any] = {
    "schedule": "plateau",
    "warmup_updates": 5,
    "decay_rate": 0.5,
    "decay_patience": 1,
    "validate_every": 2,
    "label_smoothing": 0.1,
}


def rates_of(run_dir: Path) -> dict[int, float]:
    lines = metrics(run_dir)
    return {line["update"]: line["learning_rate"] for line in lines if line["kind"] == "train"}


def test_each_update_has_the_rate_of_its_schedule_and_the_log_says_it(
    scripted: Scripted, tmp_path: Path
) -> None:
    made = scripted(
        num_updates=9, log_every=1, schedule="inverse_sqrt", warmup_updates=4, learning_rate=0.1
    )
    updater, given = made.updater, []

    def noted(*arguments: Any) -> UpdateResult:
        given.append(float(made.optimizer.learning_rate))
        return updater(*arguments)

    made.updater = noted
    made.run()
    expected = [0.025, 0.05, 0.075, 0.1, *(0.1 * (4 / step) ** 0.5 for step in range(5, 10))]
    np.testing.assert_allclose(given, expected, rtol=1e-6)
    np.testing.assert_allclose(list(rates_of(tmp_path / "run").values()), expected, rtol=1e-5)


def test_a_plateau_of_bleu_lowers_the_rate(scripted: Scripted, tmp_path: Path) -> None:
    scripted(
        bleus=[3, 5, 5, 4, 6, 6],
        num_updates=11,
        validate_every=2,
        log_every=1,
        schedule="plateau",
        decay_patience=2,
        decay_rate=0.1,
        learning_rate=0.1,
    ).run()
    rates = list(rates_of(tmp_path / "run").values())
    np.testing.assert_allclose(rates, [0.1] * 8 + [0.01] * 3)


@pytest.mark.slow
def test_a_schedule_goes_on_bit_for_bit_after_a_stop(data_dir: Path, tmp_path: Path) -> None:
    for name in ("stopped", "whole"):
        if name == "stopped":
            train(data_dir, tmp_path / name, **SCHEDULE, num_updates=7, log_every=1)
        train(data_dir, tmp_path / name, **SCHEDULE, log_every=1)
    rates = rates_of(tmp_path / "whole")
    assert rates == rates_of(tmp_path / "stopped")
    assert rates[1] == pytest.approx(TRAINING.learning_rate / 5) and len(rates) == NUM_UPDATES
    assert min(rates.values()) < rates[1]  # plateaus lowered the rate
    (ours, record), (theirs, expected) = (
        arrays_of(checkpoints(tmp_path / name)[-1]) for name in ("stopped", "whole")
    )
    assert record["plateau"] == expected["plateau"]
    for (name, array), other in zip(ours.items(), theirs.values(), strict=True):
        np.testing.assert_array_equal(array, other, err_msg=name)


# Starting with another run's weights


def weights_of(variables: Any) -> list[Any]:
    return [np.array(variable) for variable in variables]


def test_a_new_run_begins_with_the_best_weights_of_another_and_goes_on_without_it(
    data_dir: Path,
    tmp_path: Path,
    finished: tuple[Path, TrainingResult],
    capfd: pytest.CaptureFixture[str],
) -> None:
    first = copy_run(finished[0], tmp_path / "first")
    best = weights_of(load_run(first).model.weights)
    options: dict[str, Any] = {"init_from": first, "seed": 7, "num_updates": 2}
    made = trainer(data_dir, tmp_path / "run", **options)
    for ours, theirs in zip(weights_of(made.model.weights), best, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert (made.progress.update, int(made.optimizer.iterations)) == (0, 0)
    made.run()
    assert (
        f"starting with the weights of {first}, update {finished[1].best_update}"
        in capfd.readouterr().err
    )
    trained = weights_of(made.model.weights)
    shutil.rmtree(first)
    again = trainer(data_dir, tmp_path / "run", **{**options, "num_updates": 3})
    for ours, theirs in zip(weights_of(again.model.weights), trained, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    with pytest.raises(ValueError, match=f"init_from was '{first}', is None"):
        trainer(data_dir, tmp_path / "run", **{**options, "init_from": None})


def test_a_start_that_ended_before_its_first_checkpoint_begins_with_them_again(
    data_dir: Path, tmp_path: Path, finished: tuple[Path, TrainingResult]
) -> None:
    best = weights_of(load_run(finished[0]).model.weights)
    for _ in range(2):
        made = trainer(data_dir, tmp_path / "run", init_from=finished[0])
        for ours, theirs in zip(weights_of(made.model.weights), best, strict=True):
            np.testing.assert_array_equal(ours, theirs)


def test_best_weights_without_a_checkpoint_are_not_replaced(
    data_dir: Path, tmp_path: Path, finished: tuple[Path, TrainingResult]
) -> None:
    run_dir = copy_run(finished[0], tmp_path / "run")
    for path in checkpoints(run_dir):
        path.unlink()
    before = (run_dir / "config.json").read_text()
    with pytest.raises(ValueError, match="the run has no checkpoints to resume from"):
        trainer(data_dir, run_dir, num_updates=999)
    assert (run_dir / "config.json").read_text() == before


def test_a_run_that_was_never_validated_gives_its_newest_weights(
    data_dir: Path, tmp_path: Path, finished: tuple[Path, TrainingResult]
) -> None:
    first = copy_run(finished[0], tmp_path / "first")
    (first / "best.npz").unlink()
    made = trainer(data_dir, tmp_path / "run", init_from=first)
    arrays, _ = arrays_of(checkpoints(first)[-1])
    expected = {name.partition(":")[2]: array for name, array in arrays.items()}
    for weight in made.model.weights:
        np.testing.assert_array_equal(np.array(weight), expected[weight.path])


def names_after(beginning: str, note: str) -> set[str]:
    assert note.startswith(beginning)
    return set(note.removeprefix(beginning).split(", "))


def test_a_model_with_another_attention_begins_with_the_weights_that_both_have(
    data_dir: Path, tmp_path: Path, finished: tuple[Path, TrainingResult]
) -> None:
    other = dataclasses.replace(MODEL, attention="bahdanau")
    begun = Trainer(tmp_path / "run", data_dir, other, TRAINING, finished[0])
    given = {v.path: np.array(v) for v in load_run(finished[0]).model.weights}
    paths = {variable.path for variable in begun.model.weights}
    for variable in begun.model.weights:
        if variable.path in given:
            np.testing.assert_array_equal(np.array(variable), given[variable.path])
    *_, new, left_out = begun._notes
    assert names_after("newly initialised weights: ", new) == paths - set(given)
    assert names_after(f"weights of {finished[0]} left out: ", left_out) == set(given) - paths
    assert len(paths & set(given)) > 10


def test_weights_that_do_not_fit_are_refused_and_no_run_is_made(
    data_dir: Path, tmp_path: Path, finished: tuple[Path, TrainingResult]
) -> None:
    message = (
        rf"^{finished[0] / 'best.npz'}: expected source_embedding/embeddings of shape \(7, 9\); "
        r"got \(7, 5\)$"
    )
    wider = dataclasses.replace(MODEL, embedding_dim=9)
    with pytest.raises(ValueError, match=message):
        Trainer(tmp_path / "run", data_dir, wider, TRAINING, finished[0])
    with pytest.raises(ValueError, match=f"{data_dir}: expected a run directory"):
        trainer(data_dir, tmp_path / "run", init_from=data_dir)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(("position", "reason"), [(0, "it has other files"), (1, "no devices")])
def test_only_the_chief_looks_at_its_run_directory(
    position: int, reason: str, data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "of another run.txt").touch()
    cluster = Cluster({"worker": ["a:1", "b:1"]}, "worker", position)
    monkeypatch.setattr(start, "find_cluster", lambda *_: cluster)

    def no_devices(devices: Any) -> None:
        raise ValueError("no devices")

    monkeypatch.setattr(start, "find_devices", no_devices)
    with pytest.raises(ValueError, match=reason):
        trainer(data_dir, tmp_path)
