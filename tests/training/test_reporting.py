import json
import math
import re
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tensorboard.backend.event_processing import (  # type: ignore[import-untyped]
    plugin_event_accumulator,
)
from tensorboard.backend.event_processing.event_accumulator import (  # type: ignore[import-untyped]
    EventAccumulator,
)
from tensorboard.util.tensor_util import make_ndarray  # type: ignore[import-untyped]
from tqdm import tqdm

from seq2seq_memattn.training import reporting
from seq2seq_memattn.training.measurements import Window
from seq2seq_memattn.training.reporting import Reporter
from tests.disks import small_disk_of


def lines_of(run_dir: Path) -> list[dict[str, Any]]:
    text = (run_dir / "metrics.jsonl").read_text(encoding="utf-8")
    assert text == "" or text.endswith("\n")
    return [json.loads(line) for line in text.splitlines()]


def report(run_dir: Path, begin: int, end: int) -> None:
    """Reports a start that continues from `begin`: logs each update, validates every third."""
    run_dir.mkdir(exist_ok=True)
    reporter = Reporter(run_dir, begin, 12)
    for update in range(begin + 1, end + 1):
        reporter.count_update(Window().glance())
        reporter.log("train", update, {"loss": 1 / update})
        if update % 3 == 0:
            reporter.log("valid", update, {"bleu": 10.0 * update})
    reporter.close()


def test_a_line_has_kind_update_and_nine_digits(tmp_path: Path) -> None:
    reporter = Reporter(tmp_path, 0, 12)
    reporter.log("train", 3, {"loss": 2 / 3, "tokens_per_second": 1234567.8})
    reporter.log("valid", 3, {"bleu": float("nan"), "seconds": float("inf")})
    reporter.close()
    assert lines_of(tmp_path) == [
        {"kind": "train", "update": 3, "loss": 0.666666667, "tokens_per_second": 1234567.8},
        {"kind": "valid", "update": 3, "bleu": None, "seconds": None},
    ]


def test_a_validation_that_was_lost_with_its_checkpoint_is_logged_once(tmp_path: Path) -> None:
    report(tmp_path, 0, 6)
    reporter = Reporter(tmp_path, 6, 12, validated=3)
    reporter.log("valid", 6, {"bleu": 61.0})
    reporter.close()
    found = [line for line in lines_of(tmp_path) if line["kind"] == "valid"]
    assert [(line["update"], line["bleu"]) for line in found] == [(3, 30.0), (6, 61.0)]


@pytest.mark.parametrize("hidden", [False, True])
def test_the_time_left_needs_no_bar(
    hidden: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Commands that start several trainings set TQDM_DISABLE, but tqdm reads it only at import.
    monkeypatch.setattr(reporting, "tqdm", partial(tqdm, disable=hidden))
    reporter = Reporter(tmp_path, 2, 5)
    assert math.isnan(reporter.seconds_left)
    left = []
    for _ in range(3):
        time.sleep(0.01)
        reporter.count_update(Window().glance())
        left.append(reporter.seconds_left)
    reporter.close()
    assert left[0] >= 0.02
    assert left[2] == 0


def test_lines_are_there_at_once(tmp_path: Path) -> None:
    reporter = Reporter(tmp_path, 0, 12)
    reporter.log("train", 1, {"loss": 1.0})
    assert len(lines_of(tmp_path)) == 1
    reporter.close()


def test_a_later_start_neither_repeats_nor_misses_a_line(tmp_path: Path) -> None:
    report(tmp_path / "a", 0, 12)
    for begin, end in ((0, 5), (3, 7), (7, 8), (6, 11), (9, 12)):
        report(tmp_path / "b", begin, end)
    assert lines_of(tmp_path / "a") == lines_of(tmp_path / "b")
    updates = [line["update"] for line in lines_of(tmp_path / "b") if line["kind"] == "train"]
    assert updates == list(range(1, 13))


@pytest.mark.parametrize("torn", [b'{"kind": "train", "upda', b"7", b"{}", b"\0\0\0", b"\xff\n"])
def test_a_line_that_was_half_written_is_removed(tmp_path: Path, torn: bytes) -> None:
    report(tmp_path, 0, 2)
    before = lines_of(tmp_path)
    with open(tmp_path / "metrics.jsonl", "ab") as stream:
        stream.write(torn)
    report(tmp_path, 2, 2)
    assert lines_of(tmp_path) == before


def test_tensorboard_has_the_same_figures(tmp_path: Path) -> None:
    report(tmp_path, 0, 6)
    events = EventAccumulator(str(tmp_path / "tensorboard"), size_guidance={"tensors": 0})
    events.Reload()
    assert set(events.Tags()["tensors"]) == {"train/loss", "valid/bleu"}
    for kind, name in (("train", "loss"), ("valid", "bleu")):
        expected = [line for line in lines_of(tmp_path) if line["kind"] == kind]
        found = events.Tensors(f"{kind}/{name}")
        assert [event.step for event in found] == [line["update"] for line in expected]
        values = [float(make_ndarray(event.tensor_proto)) for event in found]
        assert values == pytest.approx([line[name] for line in expected], rel=1e-5)


def test_tensorboard_forgets_what_an_interrupted_start_left(tmp_path: Path) -> None:
    for begin, end in ((0, 5), (3, 6)):
        report(tmp_path, begin, end)
        time.sleep(1.1)  # TensorBoard orders files by their time in seconds
    folder = str(tmp_path / "tensorboard")
    events = plugin_event_accumulator.EventAccumulator(folder)  # the one that its pages use
    events.Reload()
    assert [event.step for event in events.Tensors("train/loss")] == [1, 2, 3, 4, 5, 6]


@small_disk_of(2**16)
def test_a_full_disk_is_an_os_error_that_names_the_file(small_disk: Path) -> None:
    def fill() -> str:
        with pytest.raises(OSError) as raised:
            for update in range(1, 5000):
                reporter.log("train", update, {"loss": 1.0})
        return str(raised.value.filename)

    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(16 * 1024))
    reporter = Reporter(small_disk, 0, 10**6)
    assert fill().endswith(("metrics.jsonl", "tensorboard"))
    ballast.unlink()  # both files need space to be closed
    reporter.close()


def test_progress_and_messages_go_to_standard_error(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    reporter = Reporter(tmp_path, 4, 12)
    figures = {
        "loss": 0.5,
        "gradient_norm": 1.25,
        "tokens_per_second": 12_345.0,
        "tokens_per_second_per_worker": 6_172.5,
        "waiting": 0.004,
    }
    reporter.count_update(figures)
    reporter.say("update 5 skipped")
    with reporter.bar(3, "validation") as bar:
        bar.update(2)
    reporter.close()
    captured = capfd.readouterr()
    assert captured.out == ""
    assert "update 5 skipped" in captured.err
    expected = "loss 0.5000, norm 1.25, 12,345 tokens/s (6,172 a worker), 0.4% waiting, "
    assert expected in captured.err
    assert re.search(r"waiting, [\d,]+ MiB", captured.err)
    assert "5/12" in captured.err
    assert "validation" in captured.err
