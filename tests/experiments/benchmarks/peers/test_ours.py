import json
from typing import Any

import pytest

from seq2seq_memattn import __version__
from tests.marks import slow
from tests.running import run_here

SIZES = ("--lengths", "4", "--batch", "3", "--n", "5", "--units", "6", "--vocab", "7")


def measure(*words: str) -> dict[str, Any]:
    name = "experiments.benchmarks.peers.ours"
    done = run_here(name, *SIZES, "--beam", "2", "--repeats", "1", *words)
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    return json.loads(done.stdout.decode().splitlines()[-1])


@pytest.mark.parametrize(
    "words",
    [
        ("--attention", "k_memory:2"),
        *slow(
            (("--attention", "luong_general", "--option", "plain"),),
            (("--attention", "bahdanau", "--option", "bfloat16"),),
            (("--attention", "k_memory:2", "--option", "int8"),),
        ),
    ],
)
def test_it_decodes_to_the_lengths_of_the_sources(
    words: tuple[str, ...], in_this_process: None
) -> None:
    row = measure(*words)  # the protocol checks the lengths
    assert (row["peer"], row["kind"], row["attention"]) == ("seq2seq_memattn", "decode", words[1])
    assert row["versions"]["seq2seq_memattn"] == __version__ and "tensorflow" in row["versions"]
    assert row["tokens_per_s"] > 0


@pytest.mark.slow
def test_it_trains(in_this_process: None) -> None:
    row = measure("--train", "--attention", "k_memory:2", "--option", "no_feeding")
    assert (row["kind"], row["option"]) == ("train", ["no_feeding"])
    assert 0 < row["loss"][1] < 5


def test_eight_bits_are_for_decoding_alone(in_this_process: None) -> None:
    with pytest.raises(ValueError, match="int8: expected decoding"):
        measure("--train", "--attention", "k_memory:2", "--option", "int8")


def test_an_unknown_attention_is_refused(in_this_process: None) -> None:
    with pytest.raises(ValueError, match="memory_of_k"):
        measure("--attention", "memory_of_k")
