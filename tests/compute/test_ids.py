"""Ids outside a vocabulary are refused wherever their values are known."""

from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from seq2seq_memattn.compute.ids import ids_below
from seq2seq_memattn.config import ModelConfig
from seq2seq_memattn.losses import TokenCrossEntropy
from seq2seq_memattn.model import Seq2Seq
from seq2seq_memattn.search.beam import beam_search
from seq2seq_memattn.search.greedy import greedy_search
from tests.inputs import normal, run, tensor
from tests.running import run_python
from tests.tolerances import as_array, assert_close

SOURCES, TARGETS = 8, 6  # sizes of the two vocabularies
RIGHT = np.array([[3, 5, 2], [4, 2, 0]], np.int32)


def with_id(wrong: int) -> Any:
    ids = RIGHT.copy()
    ids[1, 0] = wrong
    return ids


@pytest.fixture(scope="module")
def model() -> Seq2Seq:
    return Seq2Seq(
        ModelConfig(
            source_vocab_size=SOURCES,
            target_vocab_size=TARGETS,
            encoder_units=3,
            decoder_units=3,
            attention="k_memory:2",
        )
    )


def readers(model: Seq2Seq) -> dict[str, tuple[str, int, Any]]:
    """Readers of ids, by name: the argument's name, the vocabulary's size, a function of ids."""
    logits = tensor(normal(*RIGHT.shape, TARGETS))

    def of_model(name: str) -> Any:
        ids = {"source": tensor(RIGHT, "int32"), "target_inputs": tensor(RIGHT, "int32")}
        return lambda wrong: model({**ids, name: wrong})

    return {
        "source": ("source", SOURCES, of_model("source")),
        "target": ("target_inputs", TARGETS, of_model("target_inputs")),
        "loss": ("y_true", TARGETS, lambda ids: TokenCrossEntropy()(ids, logits)),
        "loss of three axes": (
            "y_true",
            TARGETS,
            lambda ids: TokenCrossEntropy()(ids[:, :, None], logits),
        ),
        "search": ("source", SOURCES, lambda ids: beam_search(model, ids, 2, max_length=3).tokens),
    }


READERS = ("source", "target", "loss", "loss of three axes", "search")


@pytest.mark.parametrize("kind", ["NumPy", "tensor", "int64"])
@pytest.mark.parametrize("reader", READERS)
def test_wrong_ids_are_refused_in_eager_mode(model: Seq2Seq, reader: str, kind: str) -> None:
    name, size, read = readers(model)[reader]

    def given(ids: Any) -> Any:
        return ids if kind == "NumPy" else tensor(ids, "int32" if kind == "tensor" else kind)

    read(given(with_id(size - 1)))
    for wrong in (size, 10**9, -1):
        with pytest.raises(ValueError) as error:
            read(given(with_id(wrong)))
        assert str(error.value) == f"`{name}`: expected ids in 0..{size - 1}; got {wrong}."


@pytest.mark.parametrize("reader", READERS)
def test_a_plain_graph_refuses_them_when_it_runs(model: Seq2Seq, reader: str) -> None:
    name, size, read = readers(model)[reader]
    compute = tf.function(read, [tf.TensorSpec([None, None], tf.int32)], autograph=False)
    compute(with_id(size - 1))
    for wrong in (size, -1):
        message = rf"\[`{name}`: expected ids in 0\.\.{size - 1}; got\] \[{wrong}\]"
        with pytest.raises(tf.errors.InvalidArgumentError, match=message):
            compute(with_id(wrong))


def test_greedy_search_refuses_them_too(model: Seq2Seq) -> None:
    with pytest.raises(ValueError, match=r"`source`: expected ids in 0\.\.7; got 8\."):
        greedy_search(model, with_id(8))


def test_compiled_code_takes_ids_as_they_are_and_has_no_check() -> None:
    ids = tensor(with_id(9), "int32")
    found = run("xla", lambda x: ids_below("ids", x, 8), ids)
    np.testing.assert_array_equal(as_array(found), as_array(ids))
    graph = tf.function(lambda x: ids_below("ids", x, 8), jit_compile=True)
    kinds = {op.type for op in graph.get_concrete_function(ids).graph.get_operations()}
    assert not kinds & {"Assert", "Max", "Cast"}
    symbolic = keras.Input((None,), dtype="int32")
    assert ids_below("ids", symbolic, 8) is symbolic


def test_an_array_is_seen_while_compiled_code_is_traced() -> None:
    with pytest.raises(ValueError, match="`ids`: expected ids in 0..7; got 9."):
        run("xla", lambda: ids_below("ids", with_id(9), 8))


def test_a_graph_has_one_reduction_of_each_array_of_ids(model: Seq2Seq) -> None:
    graph = tf.function(lambda x: ids_below("ids", x, 8), autograph=False)
    operations = graph.get_concrete_function(tensor(RIGHT, "int32")).graph.get_operations()
    kinds = [op.type for op in operations]
    assert kinds.count("Max") == 1 and kinds.count("Assert") + kinds.count("If") == 1


@pytest.mark.parametrize("shape", [(0, 3), (2, 0)])
def test_there_may_be_no_ids(shape: tuple[int, int]) -> None:
    for ids in (np.zeros(shape, np.int32), tensor(np.zeros(shape), "int32")):
        assert ids_below("ids", ids, 8) is ids


def test_an_exported_model_refuses_them(model: Seq2Seq, tmp_path: Any) -> None:
    spec = tf.TensorSpec([None, None], tf.int32)
    signature = [{"source": spec, "target_inputs": spec}]
    model.export(tmp_path, input_signature=signature, verbose=False)
    again = tf.saved_model.load(tmp_path)
    ids = {"source": tensor(RIGHT, "int32"), "target_inputs": tensor(RIGHT, "int32")}
    assert_close(again.serve(ids), model(ids))
    with pytest.raises(tf.errors.InvalidArgumentError, match="expected ids in 0..7; got"):
        again.serve({**ids, "source": tensor(with_id(8), "int32")})


def test_replicas_refuse_them() -> None:
    strategy = tf.distribute.MirroredStrategy(["CPU:0"])
    with strategy.scope():
        model = Seq2Seq(ModelConfig(encoder_units=3, decoder_units=3, attention="k_memory:2"))

    @tf.function(autograph=False)
    def compute(ids: Any) -> Any:
        return strategy.run(lambda ids: model({"source": ids, "target_inputs": ids}), [ids])

    compute(tensor(RIGHT, "int32"))
    size = model.config.source_vocab_size
    with pytest.raises(tf.errors.InvalidArgumentError, match=rf"ids in 0\.\.{size - 1}; got"):
        compute(tensor(with_id(size), "int32"))


SCRIPT = """
import os
import sys

sys.modules["tensorflow"] = None  # importing it fails from here on
os.environ["KERAS_BACKEND"] = "jax"

import jax
import numpy as np

from seq2seq_memattn.compute.ids import ids_below
from seq2seq_memattn.config import ModelConfig
from seq2seq_memattn.model import Seq2Seq
from seq2seq_memattn.search.beam import beam_search

model = Seq2Seq(ModelConfig(source_vocab_size=8, encoder_units=3, decoder_units=3))
ids = np.array([[3, -1, 2]], np.int32)
for read in (
    lambda ids: ids_below("source", jax.numpy.asarray(ids), 8),
    lambda ids: model({"source": ids, "target_inputs": ids}),
    lambda ids: beam_search(model, ids, 2),
):
    try:
        read(ids)
    except ValueError as error:
        assert str(error) == "`source`: expected ids in 0..7; got -1.", error
    else:
        raise AssertionError("ids out of range were taken")
assert (jax.jit(lambda ids: ids_below("source", ids, 8))(ids) == ids).all()
"""


def test_on_jax_they_are_refused_outside_of_compiled_code() -> None:
    process = run_python("-c", SCRIPT)
    assert process.returncode == 0, process.stderr.decode()[-3000:]
