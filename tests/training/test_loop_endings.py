"""How a run ends: by its options, by NaN, or by a signal."""

import itertools
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seq2seq_memattn.training.loop import InterruptedRun, Trainer, TrainingResult
from seq2seq_memattn.training.measurements import UpdateResult
from seq2seq_memattn.training.updates.loss_scale import FIRST, SMALLEST
from tests.training.runs import (
    NUM_UPDATES,
    arrays_of,
    assert_same_runs,
    checkpoints,
    train,
    trainer,
)
from tests.training.scripts import Scripted, update

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


def test_while_bleu_is_zero_the_loss_tells_what_is_better(scripted: Scripted) -> None:
    made = scripted(bleus=[0] * 5, num_updates=99, validate_every=2, patience=2)
    losses = iter([9.0, 8.0, 7.0, 7.5, 7.0])
    made.validator.scorer = lambda sources, *_: np.full(len(sources), -next(losses))  # type: ignore[assignment]
    result = made.run()
    assert (result.update, result.reason, result.best_update) == (10, "patience", 6)


def test_patience_does_not_count_a_last_validation_that_comes_early(scripted: Scripted) -> None:
    first = scripted(bleus=[5, 4, 3], num_updates=5, validate_every=2, patience=2).run()
    assert (first.update, first.reason) == (5, "updates")
    made = scripted(bleus=[6, 4, 4], num_updates=99, validate_every=2, patience=2)
    result = made.run()
    assert (result.update, result.reason, result.best_update) == (10, "patience", 6)


def test_patience_and_the_best_score_outlive_a_restart(scripted: Scripted) -> None:
    first = scripted(bleus=[5, 4], num_updates=4, validate_every=2, patience=2).run()
    assert first.reason == "updates"
    made = scripted(bleus=[4], num_updates=99, validate_every=2, patience=2)
    result = made.run()
    assert (result.update, result.reason, result.best_update) == (6, "patience", 2)


# A kill


class Killed(Exception):
    """Imitates a kill: everything not yet written is lost."""


@pytest.mark.parametrize("moment", ["while_they_are_written", "in_the_next_update"])
def test_after_a_kill_no_worse_validation_replaces_the_best_weights(
    scripted: Scripted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    def killed(*_: Any) -> None:
        raise Killed

    def updates() -> Iterator[UpdateResult]:
        yield from (update(), update())
        raise Killed

    options: dict[str, Any] = {"num_updates": 4, "validate_every": 2, "checkpoint_minutes": 30.0}
    first = scripted(updates(), bleus=[5], **options)
    with monkeypatch.context() as patch, pytest.raises(Killed):
        if moment == "while_they_are_written":
            patch.setattr("seq2seq_memattn.training.loop.write_arrays", killed)
        first.run()
    best = {"update": 2, "bleu": first.progress.best_bleu}

    result = scripted(bleus=[3, 3], **options).run()
    assert {"update": result.best_update, "bleu": result.best_bleu} == best
    assert arrays_of(tmp_path / "run" / "best.npz")[1] == best


def test_better_weights_of_a_checkpoint_that_is_gone_are_kept(
    scripted: Scripted, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options: dict[str, Any] = {"validate_every": 2, "checkpoint_minutes": 30.0}
    scripted(bleus=[2, 5], num_updates=4, **options).run()
    best = arrays_of(tmp_path / "run" / "best.npz")[1]
    assert best["update"] == 4
    checkpoints(tmp_path / "run")[-1].unlink()
    result = scripted(bleus=[3, 2], num_updates=6, **options).run()
    assert arrays_of(tmp_path / "run" / "best.npz")[1] == best
    assert result.best_update == 4 and result.best_bleu < best["bleu"]
    note = f"best.npz is better than the remaining checkpoints: BLEU {best['bleu']:.2f} at"
    assert note in capsys.readouterr().err


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


def test_a_skipped_update_keeps_its_number_if_its_result_comes_late(
    scripted: Scripted, capfd: pytest.CaptureFixture[str]
) -> None:
    options: dict[str, Any] = {"validate_every": 4, "checkpoint_minutes": 30.0}
    made = scripted([None, None, update(np.nan), update()], num_updates=4, **options)
    late = [update(), update(np.inf)]
    made._finish = lambda: [late.pop(0) for _ in range(len(late))]
    assert made.run().skipped == 2
    captured = capfd.readouterr().err
    assert "update 1 skipped: loss nan" in captured
    assert "update 4 skipped: loss inf" in captured


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


def test_in_float16_the_scale_of_the_loss_falls_first(
    scripted: Scripted, capfd: pytest.CaptureFixture[str]
) -> None:
    options: dict[str, Any] = {"max_nan_updates": 3, "precision": "mixed_float16"}
    overflows = [update(np.inf) for _ in range(7)]
    made = scripted([*overflows, update()], num_updates=8, **options)
    result = made.run()
    assert (result.skipped, result.loss) == (7, 1.0)
    assert made.progress.loss_scale.value == FIRST / 2**7
    assert f"; the loss is scaled by {FIRST / 2:g} from now on" in capfd.readouterr().err

    # When the scale cannot fall further, the loss itself must be wrong.
    halvings = int(np.log2(FIRST / SMALLEST))
    hopeless = scripted(itertools.repeat(update(np.nan)), num_updates=100, **options)
    assert hopeless.progress.update == 8
    with pytest.raises(ValueError, match="3 updates in a row"):
        hopeless.run()
    assert hopeless.progress.skipped == halvings + 3


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
    expected = f"{number.name}: saved {checkpoint}; run the same command again to resume"
    assert str(raised.value) == expected
    again = scripted()
    assert again.progress.update == 3
    assert again.run().update == NUM_UPDATES


@pytest.mark.parametrize("moment", ["the_update", "the_checkpoint"])
def test_a_second_ctrl_c_ends_the_run_at_once_and_leaves_nothing_half_written(
    scripted: Scripted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    def interrupt() -> None:
        os.kill(os.getpid(), signal.SIGINT)

    def updates() -> Iterator[UpdateResult]:
        yield from (update(), update())
        interrupt()
        if moment == "the_update":
            interrupt()
        yield update()

    def write_half(stream: Any, **_: Any) -> None:
        stream.write(b"half")
        interrupt()

    made = scripted(updates(), checkpoint_minutes=30.0)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt, match="^interrupted at"):
        patch.setattr(np, "savez", write_half)
        made.run()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert not checkpoints(tmp_path / "run")
    assert not list((tmp_path / "run").rglob("*.tmp"))
    assert scripted().run().update == NUM_UPDATES


def test_a_signal_during_the_last_update_puts_its_validation_off(scripted: Scripted) -> None:
    def updates() -> Iterator[UpdateResult]:
        yield update()
        os.kill(os.getpid(), signal.SIGTERM)
        yield update()

    with pytest.raises(InterruptedRun):
        scripted(updates(), num_updates=2).run()
    again = scripted(num_updates=2)
    assert (again.progress.update, again.progress.validated) == (2, 0)
    assert again.run().reason == "updates"
    assert again.progress.validated == 2


def test_a_signal_while_a_validation_scores_is_heard_before_it_decodes(
    data_dir: Path, tmp_path: Path
) -> None:
    made = trainer(data_dir, tmp_path / "run", checkpoint_minutes=30.0)

    def score(sources: Any, targets: Any, batch_size: int, on_scored: Any) -> Any:
        os.kill(os.getpid(), signal.SIGTERM)
        on_scored(len(sources))
        pytest.fail("the validation went on")

    made.validator.scorer = score
    with pytest.raises(InterruptedRun):
        made.run()
    _, record = arrays_of(checkpoints(tmp_path / "run")[-1])
    assert (record["update"], record["validated"]) == (5, 0)


@pytest.mark.slow
@pytest.mark.parametrize("number", [3, 1], ids=["the last", "in between"])
def test_a_validation_that_a_signal_cuts_short_is_made_up_for(
    data_dir: Path, tmp_path: Path, finished: tuple[Path, TrainingResult], number: int
) -> None:
    made = trainer(data_dir, tmp_path / "run", checkpoint_minutes=30.0)
    decode, count = made.validator.decoder, itertools.count(1)

    def interrupted(sources: Any, batch_size: int, on_batch: Any) -> Any:
        if next(count) < number:
            return decode(sources, batch_size, on_batch)

        def signalled(decoded: int) -> None:
            os.kill(os.getpid(), signal.SIGTERM)
            on_batch(decoded)
            pytest.fail("the validation went on")

        return decode(sources, batch_size, signalled)

    made.validator.decoder = interrupted  # type: ignore[assignment]
    with pytest.raises(InterruptedRun):
        made.run()
    _, record = arrays_of(checkpoints(tmp_path / "run")[-1])
    assert (record["update"], record["validated"]) == {1: (5, 0), 3: (12, 10)}[number]
    train(data_dir, tmp_path / "run")
    assert_same_runs(tmp_path / "run", finished[0])
