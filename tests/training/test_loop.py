import dataclasses
import itertools
import json
import os
import shutil
import signal
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seq2seq_memattn.data.batching import make_batch
from seq2seq_memattn.losses import TokenCrossEntropy
from seq2seq_memattn.metrics import tokenised_bleu
from seq2seq_memattn.search.batch_decoder import BatchDecoder, Hypothesis
from seq2seq_memattn.training.loop import InterruptedRun, Trainer, TrainingResult
from seq2seq_memattn.training.run_directory import load_run
from seq2seq_memattn.training.update_result import UpdateResult
from tests.training.runs import (
    MODEL,
    NUM_UPDATES,
    TRAINING,
    arrays_of,
    assert_same_runs,
    checkpoints,
    copy_run,
    damage,
    make_data,
    metrics,
    train,
    trainer,
)

Scripted = Callable[..., Trainer]

UPDATES = itertools.repeat(UpdateResult(1.0, 10.0, 0.5, True))
BLEUS = itertools.repeat(0)


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_data(tmp_path_factory.mktemp("data") / "copy")


@pytest.fixture(scope="module")
def finished(
    data_dir: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Path, TrainingResult]]:
    """A run that nothing interrupted, and its result."""
    run_dir = tmp_path_factory.mktemp("finished") / "run"
    yield run_dir, train(data_dir, run_dir)


@pytest.fixture
def scripted(data_dir: Path, tmp_path: Path) -> Scripted:
    """Makes trainers whose updates and validations are told beforehand instead of computed."""

    def make(
        updates: Iterable[UpdateResult] = UPDATES, bleus: Iterable[int] = BLEUS, **options: Any
    ) -> Trainer:
        """`bleus`: how many of the sources each validation gets right."""
        made = trainer(data_dir, tmp_path / "run", **options)
        results, rights = iter(updates), iter(bleus)
        made.updater = lambda batch: next(results)

        def decode(sources: Any, batch_size: int, on_batch: Any) -> list[list[Hypothesis]]:
            right = next(rights)
            wrong = np.zeros([0], np.int32)
            return [
                [Hypothesis(source if i < right else wrong, 0.0, 0.0)]
                for i, source in enumerate(sources)
            ]

        made.decoder = decode  # type: ignore[assignment]
        made.scorer = lambda sources, *_: np.zeros(len(sources))  # type: ignore[assignment]
        return made

    return make


def update(loss: float = 1.0, tokens: float = 10.0, norm: float = 0.5) -> UpdateResult:
    return UpdateResult(loss, tokens, norm, bool(np.isfinite(loss + norm)))


# A whole run


def test_a_run_ends_after_its_updates(finished: tuple[Path, TrainingResult]) -> None:
    run_dir, result = finished
    assert (result.update, result.reason, result.skipped) == (NUM_UPDATES, "updates", 0)
    assert result.best_update in (5, 10, 12)
    assert result.seconds > 0
    assert 0.5 < result.loss < 2.5
    names = [path.name for path in checkpoints(run_dir)]
    assert names == [f"checkpoint-{n:09d}.npz" for n in (10, 11, 12)]
    _, record = arrays_of(checkpoints(run_dir)[-1])
    # 40 examples in buckets of 4 tokens and batches of 8 are 6 batches or so an epoch.
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


def test_best_weights_are_those_of_the_best_validation(
    data_dir: Path, finished: tuple[Path, TrainingResult]
) -> None:
    run_dir, result = finished
    run = load_run(run_dir)
    assert (run.update, run.record["bleu"]) == (result.best_update, result.best_bleu)
    lines = (data_dir / "valid.source.txt").read_text().splitlines()[:6]
    sources = [np.array(run.source_vocabulary.encode(line), np.int32) for line in lines]
    found = BatchDecoder(run.model, beam_size=2)(sources, batch_size=3)
    decoded = [run.target_vocabulary.decode(best[0].tokens) for best in found]
    assert tokenised_bleu(decoded, lines).score == pytest.approx(result.best_bleu)


def test_a_run_that_was_stopped_ends_like_one_that_was_not(
    data_dir: Path, tmp_path: Path, finished: tuple[Path, TrainingResult]
) -> None:
    run_dir, expected = finished
    first = trainer(data_dir, tmp_path / "run")
    updater, count = first.updater, itertools.count(1)

    def stopped(batch: Any) -> UpdateResult:
        if next(count) == 7:  # between two lines of the log
            os.kill(os.getpid(), signal.SIGTERM)
        return updater(batch)

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


@pytest.mark.parametrize("how", ["truncated", "flipped"])
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
    again.updater = lambda batch: update()
    again.run()
    captured = capfd.readouterr().err
    assert f"{checkpoints(run_dir)[-1]}: damaged checkpoint (" in captured
    assert "; the one before it is used" in captured
    assert f"going on from update {NUM_UPDATES - 1}" in captured
    # The last line of the log was of the update that is done again.
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

    def noted(batch: Any) -> UpdateResult:
        given.append(float(made.optimizer.learning_rate))
        return updater(batch)

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


def test_a_schedule_goes_on_bit_for_bit_after_a_stop(data_dir: Path, tmp_path: Path) -> None:
    for name in ("stopped", "whole"):
        if name == "stopped":
            train(data_dir, tmp_path / name, **SCHEDULE, num_updates=7, log_every=1)
        train(data_dir, tmp_path / name, **SCHEDULE, log_every=1)
    rates = rates_of(tmp_path / "whole")
    assert rates == rates_of(tmp_path / "stopped")
    assert rates[1] == pytest.approx(TRAINING.learning_rate / 5) and len(rates) == NUM_UPDATES
    assert min(rates.values()) < rates[1]  # there were plateaus
    (ours, record), (theirs, expected) = (
        arrays_of(checkpoints(tmp_path / name)[-1]) for name in ("stopped", "whole")
    )
    assert record["plateau"] == expected["plateau"]
    for (name, array), other in zip(ours.items(), theirs.values(), strict=True):
        np.testing.assert_array_equal(array, other, err_msg=name)


# Beginning with another run's weights


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
    assert f"beginning with {first}, update {finished[1].best_update}" in capfd.readouterr().err
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


# How a run ends


def test_a_run_stops_at_a_bleu(scripted: Scripted) -> None:
    made = scripted(bleus=[0, 6], num_updates=99, validate_every=2, stop_at_bleu=99.0)
    result = made.run()
    assert (result.update, result.reason, result.best_update) == (4, "bleu", 4)
    assert result.best_bleu == pytest.approx(100.0)


def test_a_run_stops_when_its_patience_ends(scripted: Scripted) -> None:
    made = scripted(bleus=[3, 5, 5, 4, 6], num_updates=99, validate_every=2, patience=2)
    result = made.run()
    assert (result.update, result.reason, result.best_update) == (8, "patience", 4)


def test_patience_and_the_best_score_outlive_a_restart(scripted: Scripted) -> None:
    first = scripted(bleus=[5, 4], num_updates=4, validate_every=2, patience=2).run()
    assert first.reason == "updates"
    made = scripted(bleus=[4], num_updates=99, validate_every=2, patience=2)
    result = made.run()
    assert (result.update, result.reason, result.best_update) == (6, "patience", 2)


# NaN


def test_updates_that_are_not_finite_are_skipped_said_and_counted(
    scripted: Scripted, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    updates = [
        update(),
        update(np.nan),
        update(np.inf),
        update(),
        update(1.0, 10, np.inf),
        update(),
    ]
    result = scripted(updates, num_updates=6, max_nan_updates=3).run()
    assert (result.update, result.skipped, result.loss) == (6, 3, 1.0)
    captured = capfd.readouterr().err
    for line in (
        "update 2 skipped: loss nan, gradient norm 0.5",
        "update 3 skipped: loss inf, gradient norm 0.5",
        "update 5 skipped: loss 1.0, gradient norm inf",
    ):
        assert line in captured
    assert arrays_of(checkpoints(tmp_path / "run")[-1])[1]["skipped"] == 3


def test_a_run_without_an_applied_update_has_no_loss(scripted: Scripted) -> None:
    result = scripted(itertools.repeat(update(np.nan)), num_updates=2, max_nan_updates=3).run()
    assert (result.update, result.skipped, result.loss) == (2, 2, None)


def test_several_in_a_row_stop_the_run_and_the_last_good_checkpoint_is_named(
    scripted: Scripted, tmp_path: Path
) -> None:
    def stop(made: Trainer, at: int) -> str:
        message = f"3 updates in a row up to update {at} had NaN or infinite loss or gradient"
        with pytest.raises(ValueError, match=message) as raised:
            made.run()
        return str(raised.value)

    options: dict[str, Any] = {"checkpoint_minutes": 30.0, "max_nan_updates": 3}
    bad = itertools.repeat(update(np.nan))
    message = stop(scripted(itertools.chain([update(), update()], bad), **options), at=5)
    assert message.endswith("last good checkpoint: none")

    scripted([update()], num_updates=1).run()
    message = stop(scripted(bad, **options), at=4)
    (checkpoint,) = checkpoints(tmp_path / "run")
    assert message.endswith(f"last good checkpoint: {checkpoint}")


# Signals


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_saves_after_the_update_and_ends_the_run(
    scripted: Scripted, tmp_path: Path, number: signal.Signals
) -> None:
    def updates() -> Iterator[UpdateResult]:
        yield from (update(), update())
        os.kill(os.getpid(), number)
        yield update()
        pytest.fail("the run went on")

    before = signal.getsignal(number)
    with pytest.raises(InterruptedRun) as raised:
        scripted(updates(), checkpoint_minutes=30.0).run()
    assert signal.getsignal(number) is before
    assert raised.value.signal_number == number
    (checkpoint,) = checkpoints(tmp_path / "run")
    expected = f"{number.name}: saved {checkpoint}; the same command goes on from there"
    assert str(raised.value) == expected
    again = scripted()
    assert again.progress.update == 3
    assert again.run().update == NUM_UPDATES


def test_a_signal_during_the_last_update_ends_nothing(scripted: Scripted) -> None:
    def updates() -> Iterator[UpdateResult]:
        yield update()
        os.kill(os.getpid(), signal.SIGTERM)
        yield update()

    assert scripted(updates(), num_updates=2).run().reason == "updates"


@pytest.mark.parametrize("number", [1, 3], ids=["in between", "the last"])
def test_a_validation_that_a_signal_cuts_short_is_made_up_for(
    data_dir: Path, tmp_path: Path, finished: tuple[Path, TrainingResult], number: int
) -> None:
    made = trainer(data_dir, tmp_path / "run", checkpoint_minutes=30.0)
    decode, count = made.decoder, itertools.count(1)

    def interrupted(sources: Any, batch_size: int, on_batch: Any) -> Any:
        if next(count) < number:
            return decode(sources, batch_size, on_batch)

        def signalled(decoded: int) -> None:
            os.kill(os.getpid(), signal.SIGTERM)
            on_batch(decoded)
            pytest.fail("the validation went on")

        return decode(sources, batch_size, signalled)

    made.decoder = interrupted  # type: ignore[assignment]
    with pytest.raises(InterruptedRun):
        made.run()
    _, record = arrays_of(checkpoints(tmp_path / "run")[-1])
    assert (record["update"], record["validated"]) == {1: (5, 0), 3: (12, 10)}[number]
    train(data_dir, tmp_path / "run")
    assert_same_runs(tmp_path / "run", finished[0])


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
    # What leaves the updates as they are may change.
    made = scripted(
        itertools.repeat(update()), num_updates=4, beam_size=3, keep=1, log_every=1, patience=7
    )
    assert made.run().update == 4
    assert len(checkpoints(tmp_path / "run")) == 1
    assert dataclasses.asdict(made.config)["beam_size"] == 3
