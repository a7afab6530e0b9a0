import json
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments import interruptions, trainings
from seq2seq_memattn.runs.checkpoints import CheckpointFolder
from tests.training.runs import flags, make_data


class Named:
    """As much of a variable as a checkpoint needs."""

    def __init__(self, name: str, value: list[float]) -> None:
        self.path, self.value = name, np.array(value, np.float32)
        self.shape, self.dtype = self.value.shape, "float32"

    def __array__(self, *arguments: Any, **options: Any) -> Any:
        return self.value


def run_of(folder: Path, value: list[float], **record: Any) -> Path:
    """A run that saved once, at update 3."""
    record = {"update": 3, "best_bleu": 4.0, "seconds": 1.5, "memory_mib": 7.0} | record
    CheckpointFolder(folder / "checkpoints", 2).save(3, [Named("w", value)], record)
    return folder


def test_runs_are_the_same_but_for_their_timings(tmp_path: Path) -> None:
    one = run_of(tmp_path / "one", [1.0, 2.0])
    assert trainings.saved(one) == 3
    assert trainings.saved(tmp_path / "none") == 0
    for name, value, record, expected in (
        ("same", [1.0, 2.0], {"seconds": 9.0, "memory_mib": 8.0}, True),
        ("weights", [1.0, np.nextafter(np.float32(2), np.float32(3))], {}, False),
        ("record", [1.0, 2.0], {"best_bleu": 5.0}, False),
    ):
        other = run_of(tmp_path / name, value, **record)
        assert trainings.is_same(other, one) == expected, name


def test_the_last_update_of_the_log_is_of_a_whole_line(tmp_path: Path) -> None:
    assert trainings.logged(tmp_path) == 0
    lines = [json.dumps({"kind": "train", "update": n}) for n in (1, 2)]
    (tmp_path / "metrics.jsonl").write_text("\n".join(lines) + "\n")
    assert trainings.logged(tmp_path) == 2


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("error: worker 1 (localhost:1112) was lost", True),
        ("one of localhost:1111, localhost:1112, localhost:111 was lost", False),
        ("error: worker 0 (localhost:1111) was lost", False),
        ("", False),
    ],
)
def test_who_names_one_of_all_that_may_be_lost_names_none(text: str, expected: bool) -> None:
    every = ["localhost:1111", "localhost:1112", "localhost:113"]
    assert interruptions.names([every[1]], every, text) == expected


def run_to_its_end(folder: Path) -> tuple[list[str], Path]:
    """Options of a run that saves after each update, and that run."""
    data_dir, whole = make_data(folder / "data"), folder / "whole"
    options = {"num_updates": 400, "validate_every": 400, "checkpoint_minutes": 0.0}
    arguments = flags(data_dir, whole, **options)
    arguments.remove(f"--run_dir={whole}")
    trainings.finish(whole, arguments)
    return arguments, whole


@pytest.mark.slow
def test_what_a_kill_and_a_stop_leave_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interruptions, "SPREAD", 0.5)
    arguments, whole = run_to_its_end(tmp_path)
    killed = interruptions.kills(tmp_path / "killed", whole, arguments, 1)
    assert killed["same_weights"] and killed["count"] == 1
    assert 0 <= killed["most_updates_behind_the_last_checkpoint"] <= 1
    stopped = interruptions.stops(tmp_path / "stopped", whole, arguments, 1)
    assert stopped["same_weights"] and stopped["goes_on_at_the_next_update"]
    assert stopped["statuses"] == [128 + signal.SIGTERM]
    on_two_devices = interruptions.mirrored(tmp_path / "mirrored", arguments, 1)
    assert on_two_devices["same_weights"] and on_two_devices["goes_on_at_the_next_update"]
    with pytest.raises(ValueError, match="ended before all kills"):
        interruptions.kills(whole, whole, arguments, 1)


@pytest.mark.slow
def test_a_disk_that_is_full_or_read_only_is_named_and_costs_nothing(
    right_to_mount: None, tmp_path: Path
) -> None:
    arguments, whole = run_to_its_end(tmp_path)
    for row, error in (
        (interruptions.full_disk, "No space left on device"),
        (interruptions.read_only, "Read-only file system"),
    ):
        found = row(tmp_path / row.__name__, whole, arguments)
        (said,) = found["errors"]
        assert error in said and said.startswith("run/") and ".tmp" not in said
        assert found["status"] == 1
        assert found["update_of_the_last_checkpoint"] > 0
        assert found["goes_on_at_the_next_update"] and found["same_weights"]
