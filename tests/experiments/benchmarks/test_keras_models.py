import json

import numpy as np
import pytest
from keras import ops

from experiments.benchmarks import keras_models
from experiments.benchmarks.keras_models import Data, Parts
from experiments.benchmarks.plain_keras import LoopOverCells, PlainKeras
from seq2seq_memattn import BahdanauAttention
from seq2seq_memattn.vocabulary import START_ID
from tests.inputs import randomise
from tests.running import run_here
from tests.tolerances import as_array, assert_close

SIZES = ("--units=5", "--vocab_size=9", "--batch_size=3", "--num_batches=2", "--rounds=2")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("against", "works"),
    [
        ("seq2seq", ["training", "beam search", "greedy search"]),
        ("plain keras", ["training", "greedy search"]),
        ("loop over cells", ["training"]),
    ],
)
def test_each_work_is_compared_in_turns(against: str, works: list[str]) -> None:
    name = "experiments.benchmarks.keras_models"
    done = run_here(name, f"--against={against}", "--attentions=bahdanau", "--lengths=4", *SIZES)
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    rows = json.loads(done.stdout.decode().splitlines()[-1])["rows"]
    assert [row["work"] for row in rows] == works
    for row in rows:
        assert len(row["ratios"]) == 2
        assert min(row["ratios"]) <= row["ratio"] <= max(row["ratios"])


def test_a_ratio_is_the_other_model_s_time_over_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = {"search": lambda: 2.0}, {"search": lambda: 6.0, "other": lambda: 1.0}
    monkeypatch.setattr(keras_models, "functional", lambda *given: ours)
    monkeypatch.setitem(keras_models.OTHERS, "plain keras", lambda *given: theirs)
    (row,) = keras_models.compare("bahdanau", "plain keras", Data(3, 4, 9, 1), 5, 9, rounds=3)
    assert (row["work"], row["ratio"], row["seconds"]) == ("search", 3.0, 2.0)


def test_an_unknown_model_is_refused() -> None:
    done = run_here("experiments.benchmarks.keras_models", "--against=addons")
    assert done.returncode == 1
    assert b"--against: expected some of seq2seq, plain keras" in done.stderr


def test_the_loops_of_plain_keras_and_over_cells_are_the_same_model() -> None:
    data, parts = Data(3, 4, 9, 1), Parts(5, 9)
    layers = (parts.encode, parts.embedding, parts.logits)
    plain = PlainKeras(*layers, 5, 4, 10)
    loop = LoopOverCells(*layers, BahdanauAttention(5), 5)
    given = [data.source, data.targets_in]
    for model in (plain, loop):
        model(given)
    randomise(plain)
    pairs = [
        (loop.cell.cells[0], plain.cell.lstm),
        (loop.cell.mixing, plain.cell.mixing),
        (loop.cell.attention.query_projection, plain.cell.query),
        (loop.cell.attention.energy, plain.cell.energy),
        (loop.cell.attention.key_projection, plain.cell.key),
    ]
    for ours, theirs in pairs:
        ours.set_weights(theirs.get_weights())
    assert_close(loop(given), plain(given))
    tokens = plain.greedy(data.source, 4, START_ID)
    inputs = np.concatenate([np.full([3, 1], START_ID), tokens[:, :-1]], axis=1)
    again = ops.argmax(plain([data.source, inputs.astype(np.int32)]), axis=-1)
    np.testing.assert_array_equal(tokens, as_array(again))
