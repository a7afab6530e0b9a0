"""Attentions work in a user's own model: the README's, whose code runs here."""

import json
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
from keras import ops

import seq2seq_memattn as package
from tests.documents import README, blocks
from tests.marks import slow
from tests.running import run_python
from tests.tolerances import assert_close

SYMBOLS, LENGTH = 6, 3
ATTENTIONS: dict[str, Any] = {
    "KMemoryAttention": lambda: package.KMemoryAttention(4),
    "LinearAttention": lambda: package.LinearAttention(8),
    "ConstantAttention": lambda: package.ConstantAttention(),
    "BahdanauAttention": lambda: package.BahdanauAttention(16),
    "LuongAttention": lambda: package.LuongAttention("dot"),
    "LocalAttention": lambda: package.LocalAttention(2, 16),
    "FlexibleAttention": lambda: package.FlexibleAttention(16),
}


class MinimalCell(keras.layers.Layer):
    """A minimal cell for Keras: an Elman network."""

    def __init__(self, units: int) -> None:
        super().__init__()
        self.state_size = self.output_size = units
        self.dense = keras.layers.Dense(units, activation="tanh")

    def build(self, input_shape: Any) -> None:
        self.dense.build((None, input_shape[-1] + self.state_size))

    def call(self, inputs: Any, states: Any) -> Any:
        output = self.dense(ops.concatenate([inputs, states[0]], axis=-1))
        return output, [output]


(CODE,) = blocks("python", README.read_text(encoding="utf-8"))


def the_readmes_model(attention: Any, cell: Any = keras.layers.GRUCell) -> keras.Model:
    """The README's model, untrained, with another attention and cell."""
    code, found, _ = CODE.partition("symbols = ")  # the task
    assert found
    for written, name in (
        ("keras.layers.GRUCell", "Cell"),
        ("KMemoryAttention(num_slots=32)", "attention"),
    ):
        assert code.count(f"{written}(" if name == "Cell" else written) == 1
        code = code.replace(written, name)
    names = {"Cell": cell, "attention": attention}
    exec(code, names)
    return names["model"]


def test_the_readmes_model_learns_is_saved_and_copies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(CODE, names)
    np.testing.assert_array_equal(names["result"].tokens[:, 0, :5], names["new"])
    again = keras.saving.load_model("copy.keras")
    given = [names["symbols"][:3], names["targets_in"][:3]]
    assert_close(again(given), names["model"](given))


def copies() -> tuple[list[Any], Any]:
    """Model inputs (sources and target inputs) and target outputs; each target is its source."""
    tokens = np.random.default_rng(1).integers(2, SYMBOLS + 1, size=(256, LENGTH)).astype(np.int32)
    starts = np.concatenate([np.ones([len(tokens), 1], np.int32), tokens[:, :-1]], axis=1)
    return [tokens, starts], tokens


def losses_of(model: keras.Model) -> list[float]:
    model.compile(keras.optimizers.Adam(0.01), package.TokenCrossEntropy())
    x, y = copies()
    found: list[float] = model.fit(x, y, batch_size=64, epochs=6, verbose=0).history["loss"]
    return found


def test_every_attention_is_here() -> None:
    public = {name for name in package.__all__ if name.endswith("Attention")}
    # With `NoAttention`, a decoder that starts from zeros gets nothing from the source.
    assert set(ATTENTIONS) == public - {"Attention", "NoAttention"}


@pytest.mark.parametrize("name", slow(*ATTENTIONS))
def test_fit_trains_it_with_each_attention(name: str) -> None:
    losses = losses_of(the_readmes_model(ATTENTIONS[name]()))
    assert losses[-1] < 0.8 * losses[0]


@pytest.mark.parametrize("name", slow(*ATTENTIONS))
def test_fit_trains_it_with_a_cell_of_ones_own(name: str) -> None:
    losses = losses_of(the_readmes_model(ATTENTIONS[name](), MinimalCell))
    assert losses[-1] < 0.8 * losses[0]


def difference_that_padding_makes(name: str) -> float:
    """The largest change of a logit of `predict` when sources get three columns of padding."""
    model = the_readmes_model(ATTENTIONS[name]())
    (source, target), _ = copies()
    source, target = source[:8], target[:8]
    padded = np.pad(source, [(0, 0), (0, 3)])
    expected, found = (model.predict([x, target], verbose=0) for x in (source, padded))
    return float(np.abs(found - expected).max())


@pytest.mark.parametrize("backend", ["tensorflow", *slow("jax")])
def test_predict_gives_padding_no_weight(backend: str) -> None:
    names = ["KMemoryAttention", "BahdanauAttention"]
    if backend == "tensorflow":
        differences = [difference_that_padding_makes(name) for name in names]
    else:
        process = run_python(
            "-c",
            "import os, sys; os.environ['KERAS_BACKEND'] = 'jax'\n"
            "from tests.test_building_block import difference_that_padding_makes\n"
            "print([difference_that_padding_makes(name) for name in sys.argv[1:]])",
            *names,
        )
        assert process.returncode == 0, process.stderr.decode()[-3000:]
        differences = json.loads(process.stdout)
    assert max(differences) < 1e-5
