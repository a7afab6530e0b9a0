from pathlib import Path
from typing import Any

import pytest

from seq2seq_memattn.commands.train import profiled_updates
from seq2seq_memattn.training.profile import Profile


@pytest.fixture
def events(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    found: list[str] = []
    monkeypatch.setattr(Profile, "_start", lambda self: found.append("start"))
    monkeypatch.setattr(Profile, "_end", lambda self: found.append("end"))
    return found


def train(profile: Profile, events: list[str], begin: int, end: int) -> None:
    for update in range(begin, end + 1):
        profile.before_update(update)
        events.append(str(update))
        profile.after_update(update)


def test_it_records_just_the_updates_that_were_asked_for(tmp_path: Path, events: list[str]) -> None:
    profile = Profile(tmp_path, 2, 3)
    train(profile, events, 1, 5)
    profile.stop()
    assert events == ["1", "start", "2", "3", "end", "4", "5"]


def test_a_run_that_begins_or_ends_between_them_records_its_part(
    tmp_path: Path, events: list[str]
) -> None:
    profile = Profile(tmp_path, 2, 9)
    train(profile, events, 4, 5)
    profile.stop()
    assert events == ["start", "4", "5", "end"]


def test_without_updates_it_records_nothing(tmp_path: Path, events: list[str]) -> None:
    profile = Profile(tmp_path)
    train(profile, events, 1, 3)
    profile.stop()
    assert events == ["1", "2", "3"]


def test_a_full_disk_is_an_error_of_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import tensorflow as tf

    def fail(*given: Any) -> None:
        raise tf.errors.ResourceExhaustedError(None, None, "No space left on device")

    monkeypatch.setattr(tf.profiler.experimental, "start", fail)
    with pytest.raises(OSError, match=f"No space left on device: '{tmp_path}'"):
        Profile(tmp_path, 1, 1).before_update(1)


@pytest.mark.slow
def test_tensorboard_finds_what_was_recorded(tmp_path: Path) -> None:
    import tensorflow as tf

    profile = Profile(tmp_path, 1, 1)
    profile.before_update(1)
    tf.linalg.matmul(tf.ones([9, 9]), tf.ones([9, 9]))
    profile.after_update(1)
    assert list((tmp_path / "plugins" / "profile").rglob("*.xplane.pb"))


def test_the_updates_to_profile_are_two_numbers_in_order() -> None:
    assert (profiled_updates(None), profiled_updates("2:3")) == (None, (2, 3))
    for wrong in ("3:2", "0:1", "a:b", "3"):
        with pytest.raises(ValueError, match=f"--profile_steps: expected FIRST:LAST.*'{wrong}'"):
            profiled_updates(wrong)
