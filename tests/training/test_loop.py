import dataclasses
import itertools
import json
import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seq2seq_memattn.data.batching import make_batch
from seq2seq_memattn.losses import TokenCrossEntropy
from seq2seq_memattn.metrics import smoothed_bleu, tokenised_bleu
from seq2seq_memattn.runs.directory import load_run
from seq2seq_memattn.search.batch_decoder import BatchDecoder
from seq2seq_memattn.search.options import SearchOptions
from seq2seq_memattn.training.loop import InterruptedRun, Trainer, TrainingResult
from seq2seq_memattn.training.measurements import UpdateResult
from tests.marks import slow
from tests.training.runs import (
    MODEL,
    NUM_UPDATES,
    TRAINING,
    arrays_of,
    assert_same_runs,
    checkpoints,
    copy_run,
    damage,
    metrics,
    train,
    trainer,
)
from tests.training.scripts import Scripted, update

# A whole run


def test_a_run_ends_after_its_updates(finished: tuple[Path, TrainingResult]) -> None:
    run_dir, result = finished
    assert (result.update, result.reason, result.skipped) == (NUM_UPDATES, "updates", 0)
    bleu = {line["update"]: line["bleu"] for line in metrics(run_dir) if line["kind"] == "valid"}
    assert result.best_bleu == bleu[result.best_update] == max(bleu.values())
    assert result.seconds > 0
    assert 0.5 < result.loss < 2.5
    names = [path.name for path in checkpoints(run_dir)]
    assert names == [f"checkpoint-{n:09d}.npz" for n in (10, 11, 12)]
    _, record = arrays_of(checkpoints(run_dir)[-1])
    # 40 examples in buckets of 4 tokens and batches of 8 make about 6 batches per epoch.
    assert record["position"][0] == 2
    assert record["best_bleu"] == result.best_bleu


def test_each_logged_update_and_validation_has_one_line(
    finished: tuple[Path, TrainingResult],
) -> None:
    lines = metrics(finished[0])
    assert [(line["kind"], line["update"]) for line in lines] == [
        ("train", 3),
        ("valid", 5),
        ("train", 6),
        ("train", 9),
        ("valid", 10),
        ("train", 12),
        ("valid", 12),
    ]
    assert all(set(line) >= {"loss", "gradient_norm"} for line in lines if line["kind"] == "train")
    assert all("bleu" in line for line in lines if line["kind"] == "valid")


def test_a_line_of_the_log_says_speed_memory_and_the_time_left(
    finished: tuple[Path, TrainingResult],
) -> None:
    text = (finished[0] / "metrics.jsonl").read_text(encoding="utf-8")
    lines = [line for line in map(json.loads, text.splitlines()) if line["kind"] == "train"]
    for line in lines:
        assert line["tokens_per_second"] > 0
        assert line["tokens_per_second_per_worker"] == line["tokens_per_second"]  # one worker
        assert 0 <= line["waiting"] <= 1
        assert line["memory_mib"] > 100
        assert line["seconds_left"] >= 0
        assert line["skipped"] == 0
    assert lines[-1]["seconds_left"] == 0
    assert [line["seconds"] for line in lines] == sorted(line["seconds"] for line in lines)


@pytest.mark.slow
def test_a_profile_of_some_updates_is_found_by_tensorboard(data_dir: Path, tmp_path: Path) -> None:
    options = dataclasses.replace(TRAINING, num_updates=4, validate_every=4)
    result = Trainer(tmp_path / "run", data_dir, MODEL, options, profile=(2, 3)).run()
    assert result.update == 4
    (found,) = (tmp_path / "run" / "tensorboard" / "plugins" / "profile").rglob("*.xplane.pb")
    assert b"/host:CPU" in found.read_bytes()


def test_updates_that_are_done_are_not_profiled_and_that_is_said(
    data_dir: Path,
    tmp_path: Path,
    finished: tuple[Path, TrainingResult],
    capfd: pytest.CaptureFixture[str],
) -> None:
    run_dir = copy_run(finished[0], tmp_path / "run")
    Trainer(run_dir, data_dir, MODEL, TRAINING, profile=(2, 3)).run()
    assert "no profile: updates 2 to 3 have already been done" in capfd.readouterr().err
    first = TRAINING.num_updates + 1
    Trainer(run_dir, data_dir, MODEL, TRAINING, profile=(first, first)).run()
    assert f"no profile: the run ends before update {first}" in capfd.readouterr().err


@pytest.mark.slow
def test_validation_is_by_the_bleu_that_was_asked_for(data_dir: Path, tmp_path: Path) -> None:
    made = trainer(data_dir, tmp_path / "run", num_updates=2, validation_bleu="smoothed")
    result = made.run()
    sources = [np.asarray(made.valid.source[i]) for i in range(6)]
    decoded = [
        made.valid.target_vocabulary.decode(best[0].tokens)
        for best in made.validator.decoder(sources, 6)
    ]
    references = made.valid.references(6)
    assert result.best_bleu == pytest.approx(smoothed_bleu(decoded, references).score)
    assert result.best_bleu != tokenised_bleu(decoded, references).score


def test_best_weights_are_those_of_the_best_validation(
    data_dir: Path, finished: tuple[Path, TrainingResult]
) -> None:
    run_dir, result = finished
    run = load_run(run_dir)
    assert (run.update, run.record["bleu"]) == (result.best_update, result.best_bleu)
    lines = (data_dir / "valid.source.txt").read_text().splitlines()[:6]
    sources = [np.array(run.source_vocabulary.encode(line), np.int32) for line in lines]
    found = BatchDecoder(run.model, SearchOptions(2))(sources, batch_size=3)
    decoded = [run.target_vocabulary.decode(best[0].tokens) for best in found]
    assert tokenised_bleu(decoded, lines).score == pytest.approx(result.best_bleu)


@pytest.mark.slow  # the command itself is stopped in test_interruptions.py
def test_a_run_that_was_stopped_ends_like_one_that_was_not(
    data_dir: Path, tmp_path: Path, finished: tuple[Path, TrainingResult]
) -> None:
    run_dir, expected = finished
    first = trainer(data_dir, tmp_path / "run")
    updater, count = first.updater, itertools.count(1)

    def stopped(*arguments: Any) -> UpdateResult:
        if next(count) == 7:  # between two lines of the log
            os.kill(os.getpid(), signal.SIGTERM)
        return updater(*arguments)

    first.updater = stopped
    with pytest.raises(InterruptedRun):
        first.run()
    result = train(data_dir, tmp_path / "run")
    assert_same_runs(tmp_path / "run", run_dir)
    assert result._replace(seconds=0.0) == expected._replace(seconds=0.0)


def test_a_finished_run_that_is_started_again_says_the_same(
    data_dir: Path, tmp_path: Path, finished: tuple[Path, TrainingResult]
) -> None:
    run_dir = copy_run(finished[0], tmp_path / "run")
    result = train(data_dir, run_dir)
    assert result == finished[1]
    assert json.loads(json.dumps(result._asdict(), allow_nan=False))["update"] == NUM_UPDATES
    assert_same_runs(run_dir, finished[0])


@pytest.mark.parametrize("how", ["truncated", *slow("flipped")])
def test_from_a_damaged_checkpoint_a_run_goes_back_to_the_one_before(
    data_dir: Path,
    tmp_path: Path,
    finished: tuple[Path, TrainingResult],
    how: str,
    capfd: pytest.CaptureFixture[str],
) -> None:
    run_dir = copy_run(finished[0], tmp_path / "run")
    damage(checkpoints(run_dir)[-1], how)
    again = trainer(data_dir, run_dir)
    assert again.progress.update == NUM_UPDATES - 1
    again.updater = lambda *_: update()
    again.run()
    captured = capfd.readouterr().err
    assert f"{checkpoints(run_dir)[-1]}: damaged checkpoint (" in captured
    assert "; the one before it is used" in captured
    assert f"resuming from update {NUM_UPDATES - 1}" in captured
    # The last line of the log belongs to the update that is repeated.
    assert [line["update"] for line in metrics(run_dir)] == [3, 5, 6, 9, 10, 12, 12]
    assert arrays_of(checkpoints(run_dir)[-1])[1]["update"] == NUM_UPDATES


def test_a_run_whose_checkpoints_are_all_damaged_is_refused(
    data_dir: Path, tmp_path: Path, finished: tuple[Path, TrainingResult]
) -> None:
    run_dir = copy_run(finished[0], tmp_path / "run")
    for path in checkpoints(run_dir):
        damage(path, "flipped")
    with pytest.raises(ValueError, match="no checkpoint in .*run/checkpoints can be read: "):
        trainer(data_dir, run_dir)
    assert len(checkpoints(run_dir)) == 3


# The figures of the log


def test_the_log_has_means_over_tokens_of_the_updates_since_its_last_line(
    scripted: Scripted, tmp_path: Path
) -> None:
    updates = [
        update(2.0, 10, 1.0),
        update(1.0, 30, 2.0),  # mean 50 / 40
        update(3.0, 10, 3.0),
        update(np.nan, 20, 1.0),  # skipped: not in the mean
        update(0.5, 20, 0.5),
        update(0.25, 20, 0.5),
    ]
    options: dict[str, Any] = {"log_every": 2, "validate_every": 3}
    result = scripted(updates, num_updates=6, **options).run()
    trained = [line for line in metrics(tmp_path / "run") if line["kind"] == "train"]
    assert [line["loss"] for line in trained] == [1.25, 3.0, 0.375]
    assert [line["gradient_norm"] for line in trained] == [1.5, 3.0, 0.5]
    assert (result.loss, result.skipped) == (0.375, 1)


def test_an_interrupted_window_of_the_log_goes_on(scripted: Scripted, tmp_path: Path) -> None:
    scripted([update(2.0, 10)], num_updates=1, log_every=3).run()
    scripted([update(1.0, 20)], num_updates=2, log_every=3).run()
    scripted([update(0.5, 10)], num_updates=3, log_every=3).run()
    (line,) = [line for line in metrics(tmp_path / "run") if line["kind"] == "train"]
    assert line["loss"] == 45 / 40


@pytest.mark.slow
def test_the_validation_loss_is_that_of_the_validation_pairs_without_smoothing(
    data_dir: Path, tmp_path: Path
) -> None:
    made = trainer(data_dir, tmp_path / "run", num_updates=2, label_smoothing=0.5)
    made.run()
    (line,) = [line for line in metrics(tmp_path / "run") if line["kind"] == "valid"]
    sources, targets = (
        [side[i] for i in range(TRAINING.valid_examples)]
        for side in (made.valid.source, made.valid.target)
    )
    batch = make_batch(sources, targets)
    expected = float(TokenCrossEntropy()(batch["target_outputs"], made.model(batch)))
    assert line["loss"] == pytest.approx(expected, rel=1e-5)


# Configurations


def test_what_cannot_be_made_leaves_no_run_behind(data_dir: Path, tmp_path: Path) -> None:
    model = dataclasses.replace(MODEL, attention="luong_dot")
    with pytest.raises(ValueError, match="got 8 and 6 units.*`encoder_projection_units` 6"):
        Trainer(tmp_path / "run", data_dir, model, TRAINING)
    assert not (tmp_path / "run").exists()


def test_a_run_of_another_configuration_is_refused(scripted: Scripted, tmp_path: Path) -> None:
    scripted([update()], num_updates=1).run()
    message = "another configuration: clip_norm was 1.0, is 2.0; learning_rate was 0.01, is 0.5"
    with pytest.raises(ValueError, match=message):
        scripted(clip_norm=2.0, learning_rate=0.5)
    # Options that do not affect the updates may change.
    made = scripted(itertools.repeat(update()), num_updates=4, keep=1, log_every=1, patience=7)
    assert made.run().update == 4
    assert len(checkpoints(tmp_path / "run")) == 1
    assert dataclasses.asdict(made.config)["patience"] == 7


def test_compiled_by_xla_the_batches_have_few_shapes(data_dir: Path, tmp_path: Path) -> None:
    config = dataclasses.replace(TRAINING, jit_compile=True, bucket_width=1)
    trainer = Trainer(tmp_path / "run", data_dir, MODEL, config)
    batches = [batch for batch, _ in trainer.train.numpy_batches(num_epochs=1)]
    assert {batch["source"].shape for batch in batches} == {(8, 2), (8, 4), (8, 6), (8, 8)}


def test_compiled_by_xla_a_batch_has_no_more_tokens_than_it_may(
    data_dir: Path, tmp_path: Path
) -> None:
    config = dataclasses.replace(TRAINING, jit_compile=True, bucket_width=1, batch_tokens=24)
    trainer = Trainer(tmp_path / "run", data_dir, MODEL, config)
    batches = [batch for batch, _ in trainer.train.numpy_batches(num_epochs=1)]
    assert max(batch["source"].size for batch in batches) == 24
    shapes = {batch["source"].shape for batch in batches}
    assert len(shapes) == len({length for _, length in shapes})  # one number of rows each
