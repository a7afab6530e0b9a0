"""Standard error that cannot be written loses messages, and no work."""

import io
import re
import sys
from pathlib import Path

import pytest
from tqdm import tqdm

from seq2seq_memattn.notes import STANDARD_ERROR, print_note
from tests.training.runs import NUM_UPDATES, checkpoints, make_data, train


class _Broken(io.StringIO):
    """A stream like a pipe whose reader has ended."""

    def write(self, text: str) -> int:
        raise BrokenPipeError

    def flush(self) -> None:
        raise BrokenPipeError


def test_a_note_clears_the_bar_that_it_is_printed_above(capsys: pytest.CaptureFixture[str]) -> None:
    with tqdm(total=2, file=STANDARD_ERROR, miniters=1, mininterval=0) as bar:
        bar.update()
        print_note("a note")
    assert re.search("\r {10,}\ra note\n", capsys.readouterr().err)


@pytest.mark.parametrize("stream", [_Broken(), None])
def test_a_training_goes_on_without_standard_error(
    stream: io.StringIO | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data_dir = make_data(tmp_path / "data")
    monkeypatch.setattr(sys, "stderr", stream)
    print_note("nobody reads this")
    result = train(data_dir, tmp_path / "run")
    assert (result.update, result.reason) == (NUM_UPDATES, "updates")
    assert checkpoints(tmp_path / "run")[-1].name == f"checkpoint-{NUM_UPDATES:09d}.npz"
