import os
import signal

import pytest

from seq2seq_memattn.training.signals import Signals


def test_signals_are_caught_until_they_are_restored() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
    caught = Signals()
    assert caught.number == 0
    for number in (signal.SIGTERM, signal.SIGINT):
        os.kill(os.getpid(), number)
        assert caught.number == number
    caught.restore()
    assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)] == before


def test_ctrl_c_says_that_a_second_one_ends_the_training_at_once(
    capfd: pytest.CaptureFixture[str],
) -> None:
    caught = Signals()
    try:
        for number in (signal.SIGTERM, signal.SIGTERM, signal.SIGINT):
            assert capfd.readouterr().err == ""
            os.kill(os.getpid(), number)
            assert caught.number == number
        (line,) = capfd.readouterr().err.split("\n")[1:-1]  # the first line ends the bar
        assert "a second Ctrl-C ends the training at once" in line
        with pytest.raises(KeyboardInterrupt, match="^interrupted at once"):
            os.kill(os.getpid(), signal.SIGINT)
    finally:
        caught.restore()
