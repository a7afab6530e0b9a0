import dataclasses
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from experiments.benchmarks.machine_load import Stopwatch
from experiments.benchmarks.peers import protocol
from experiments.benchmarks.peers.protocol import Batch, Setting, System
from tests.running import run_python

FLAGS = ("--lengths", "5", "--batch", "3", "--n", "10", "--repeats", "2")
# What recorded results have, and pages read.
FIELDS = {
    *("peer", "versions", "python", "load", "kind", "order", "tokens", "tokens_per_s"),
    *("seconds", "all_seconds", "other_cores", "clean", "discarded"),
    *(field.name for field in dataclasses.fields(Setting)),
}


@pytest.fixture
def busy(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Cores that other programs use in each pass, 0.0 after the last; each takes two seconds."""
    cores: list[float] = []

    class Watch(Stopwatch):
        def __exit__(self, *error: object) -> None:
            self.seconds, self.elsewhere = 2.0, cores.pop(0) if cores else 0.0

    monkeypatch.setattr(protocol, "Stopwatch", Watch)
    return cores


def system(decode: Callable[[Batch], Any] = lambda batch: batch.sentences) -> System:
    return System(
        name="copier",
        versions={"copier": "1.0"},
        make_decoder=lambda setting: decode,
        make_trainer=lambda setting: lambda batch: float(batch.lengths.mean()),
        attentions=("bahdanau", "luong"),
        options=("eager",),
    )


def rows(captured: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in captured.readouterr().out.splitlines()]


def test_lengths_are_uniform_up_to_the_longest_or_normal_and_clipped() -> None:
    sizes = [len(sentence) for sentence in protocol.draw_sentences("5", 2000, 7)]
    assert {*sizes} == {1, 2, 3, 4, 5}
    assert np.bincount(sizes)[1:].min() > 300
    sizes = [len(sentence) for sentence in protocol.draw_sentences("80+-30", 2000, 7)]
    assert min(sizes) >= 1 and max(sizes) == 100 and sizes.count(100) > 200
    assert np.median(sizes) == pytest.approx(80, abs=3)
    assert {len(sentence) for sentence in protocol.draw_sentences("20+-0", 50, 7)} == {20}


def test_every_system_gets_the_same_sentences() -> None:
    first, again = (protocol.draw_sentences("9", 30, 7) for _ in range(2))
    for one, other in zip(first, again, strict=True):
        np.testing.assert_array_equal(one, other)
    assert {*np.concatenate(first).tolist()} == {*range(7)}


def test_batches_are_sorted_by_length_within_and_for_decoding_among_each_other() -> None:
    sentences = [np.full(size, size) for size in (2, 5, 1, 4, 3)]
    by_length = protocol.make_batches(sentences, 2, is_sorted=True)
    assert [batch.lengths.tolist() for batch in by_length] == [[5, 4], [3, 2], [1]]
    as_drawn = protocol.make_batches(sentences, 2, is_sorted=False)
    assert [batch.lengths.tolist() for batch in as_drawn] == [[5, 2], [4, 1], [3]]
    assert as_drawn[1].ids(num_special=10, padding=9).tolist() == [[14] * 4, [11, 9, 9, 9]]


@pytest.mark.parametrize(("number", "every"), [(8, 1), (8, 4), (9, 4), (7, 2), (2, 5), (1, 4)])
def test_batches_that_are_left_out_lie_symmetrically(number: int, every: int) -> None:
    kept = protocol.spread(number, every)
    assert len(kept) - max(1, number // every) in (0, 1)
    assert kept == sorted({*kept}) and {*kept} <= {*range(number)}
    assert [number - 1 - index for index in reversed(kept)] == kept
    if every == 1:
        assert kept == [*range(number)]


def test_hypotheses_end_before_their_end_token() -> None:
    assert protocol.until_end([[5, 4, 2, 2], [2, 0, 0, 0]], end=2, num_special=3) == [[2, 1], []]
    with pytest.raises(ValueError):
        protocol.until_end([[5, 4]], end=2, num_special=3)


def test_a_hypothesis_of_another_length_is_an_error() -> None:
    shorter = system(lambda batch: [sentence[:1] for sentence in batch.sentences])
    with pytest.raises(ValueError, match="hypotheses have the lengths"):
        protocol.run(shorter, FLAGS)


def test_decoding_makes_a_row_of_each_pair_of_lengths_and_batch(
    busy: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    words = [*FLAGS, "--lengths", "5,8+-2", "--batch", "3,4", "--option", "eager"]
    protocol.run(system(), [*words, "--attention", "luong"])
    found = rows(capsys)
    assert [(row["lengths"], row["batch"]) for row in found] == [
        (lengths, batch) for lengths in ("5", "8+-2") for batch in (3, 4)
    ]
    for row in found:
        assert {*row} == FIELDS | {"every"}
        assert (row["kind"], row["order"], row["n"], row["vocab"]) == ("decode", "sorted", 10, 20)
        assert (row["attention"], row["option"]) == ("luong", ["eager"])
        assert row["versions"] == {"copier": "1.0"}
        tokens = sum(map(len, protocol.draw_sentences(row["lengths"], 10, 20)))
        assert (row["tokens"], row["seconds"]) == (tokens, 2.0)
        assert row["tokens_per_s"] == pytest.approx(tokens / 2.0, abs=0.1)
        assert (row["all_seconds"], row["clean"], row["discarded"]) == ([2.0, 2.0], True, 0)


def test_seconds_are_scaled_up_where_batches_are_left_out(
    busy: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    protocol.run(system(), [*FLAGS, "--batch", "1", "--every", "5"])
    (row,) = rows(capsys)
    assert row["seconds"] == 2.0 * 10 / 2 and row["all_seconds"] == [10.0, 10.0]
    assert row["tokens_per_s"] == pytest.approx(row["tokens"] / 2.0, abs=0.1)


def test_training_makes_a_row_with_its_losses(
    busy: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    protocol.run(system(), [*FLAGS, "--train"])
    (row,) = rows(capsys)
    assert {*row} == FIELDS | {"loss"}
    assert (row["kind"], row["order"], row["n"]) == ("train", "random", 10)
    batches = protocol.make_batches(protocol.draw_sentences("5", 10, 20), 3, is_sorted=False)
    means = [round(batches[index].lengths.mean(), 3) for index in (0, -1)]
    assert row["loss"] == means


def test_a_loss_that_is_not_finite_is_an_error() -> None:
    diverging = system()._replace(make_trainer=lambda setting: lambda batch: float("nan"))
    with pytest.raises(ValueError, match="a loss is not finite"):
        protocol.run(diverging, [*FLAGS, "--train"])


@pytest.mark.parametrize(
    ("cores", "kept", "clean", "discarded"),
    [
        ([0.0, 0.5], [0.0, 0.0], True, 1),
        ([0.5] * 4, [0.0], True, 4),
        ([0.5] * 5, [0.5] * 5, False, 0),
    ],
)
def test_disturbed_passes_are_discarded_or_marked(
    cores: list[float], kept: list[float], clean: bool, discarded: int, busy: list[float]
) -> None:
    busy += cores
    done: list[None] = []
    found = protocol.time_passes(lambda: done.append(None), repeats=2)
    assert (found["other_cores"], found["clean"], found["discarded"]) == (kept, clean, discarded)
    assert len(done) == 1 + len(kept) + discarded


@pytest.mark.parametrize(
    ("flag", "value", "message"),
    [
        ("attention", "k_memory:4", "invalid choice: 'k_memory:4'"),
        ("option", "plain", "invalid choice: 'plain'"),
        ("batch", "3,0", "expected a whole number above 0; got '0'"),
        ("every", "-1", "expected a whole number above 0; got '-1'"),
        *(
            ("lengths", f"5,{lengths}", f"expected L or MEAN+-DEVIATION; got '{lengths}'")
            for lengths in ("0", "-3", "35+15", "x", "")
        ),
    ],
)
def test_a_wrong_flag_ends_with_one_line_about_it(
    flag: str, value: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        protocol.run(system(), [*FLAGS, f"--{flag}={value}"])
    last = capsys.readouterr().err.splitlines()[-1]
    assert f"error: argument --{flag}: {message}" in last


def test_the_protocol_needs_numpy_alone() -> None:
    program = (
        "import sys\n"
        "import experiments.benchmarks.peers.protocol\n"
        "print(sorted({'absl', 'keras', 'seq2seq_memattn', 'tensorflow'} & set(sys.modules)))"
    )
    assert run_python("-c", program).stdout == b"[]\n"
