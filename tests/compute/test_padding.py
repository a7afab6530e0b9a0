"""Masks may have padding anywhere if an attention supports that; otherwise they are refused."""

from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import seq2seq_memattn as package
from seq2seq_memattn.compute.padding import padding_last
from seq2seq_memattn.config import ModelConfig
from seq2seq_memattn.layers.encoder import Encoder
from seq2seq_memattn.model import Seq2Seq
from tests.errors import refused
from tests.inputs import mask_of, normal, run, tensor
from tests.tolerances import assert_close

OUTPUTS, QUERIES = normal(1, 6, 8), normal(1, 2, 8)
MASKS = {"left": [[0, 0, 1, 1, 1, 1]], "holes": [[1, 0, 1, 1, 0, 0]]}
HONOURING: dict[str, Any] = {
    "KMemoryAttention": lambda: package.KMemoryAttention(4),
    "KMemoryAttention, over slots": lambda: package.KMemoryAttention(4, normalise_over="slots"),
    "BahdanauAttention": lambda: package.BahdanauAttention(5),
    "LuongAttention": lambda: package.LuongAttention("dot"),
    "LinearAttention": lambda: package.LinearAttention(5),
    "ConstantAttention": lambda: package.ConstantAttention(),
    "ConstantAttention, bidirectional": lambda: package.ConstantAttention(True),
}
COUNTING: dict[str, Any] = {
    "KMemoryAttention": lambda: package.KMemoryAttention(
        4, position_encoding="masked", max_source_length=6
    ),
    "LuongAttention": lambda: package.LuongAttention("location", max_source_length=6),
    "LocalAttention": lambda: package.LocalAttention(1, 5),
    "FlexibleAttention": lambda: package.FlexibleAttention(5),
}
REFUSED = "expected padding after the real tokens, not before or between them"
masks = pytest.mark.parametrize("kind", MASKS)


@masks
@pytest.mark.parametrize("name", HONOURING)
def test_padding_may_be_anywhere(name: str, kind: str) -> None:
    attention, mask = HONOURING[name](), np.array(MASKS[kind], bool)

    def contexts(outputs: Any, mask: Any) -> Any:
        memory = attention.prepare(tensor(outputs), tensor(mask, "bool"))
        return attention.read(tensor(QUERIES), memory)[0]

    dense = OUTPUTS[:, mask[0]]
    expected = contexts(dense, np.ones(dense.shape[:2], bool))
    assert_close(contexts(OUTPUTS, mask), expected)


def readers() -> dict[str, Any]:
    """Functions of a mask, by name, that accept padding only at the end."""
    encoder = Encoder(3)
    decoder = package.AttentionDecoder(keras.layers.GRUCell(3), package.LocalAttention(1, 5))
    model = Seq2Seq(ModelConfig(encoder_units=3, decoder_units=3, attention="k_memory:2"))

    def of_ids(name: str) -> Any:
        def call(mask: Any) -> Any:
            ids = tf.cast(mask, tf.int32)
            return model(
                {"source": tf.ones_like(ids), "target_inputs": tf.ones_like(ids)} | {name: ids}
            )

        return call

    return {
        **{
            name: lambda mask, make=make: make().prepare(tensor(OUTPUTS), mask).rows
            for name, make in COUNTING.items()
        },
        "Encoder": lambda mask: encoder(tensor(OUTPUTS), mask=mask).outputs,
        **{
            f"AttentionDecoder, {name}": lambda mask, name=name: decoder(
                tensor(OUTPUTS), tensor(OUTPUTS), **{name: mask}
            )
            for name in ("inputs_mask", "encoder_outputs_mask")
        },
        "Seq2Seq, source": of_ids("source"),
        "Seq2Seq, target": of_ids("target_inputs"),
    }


@masks
def test_padding_that_does_not_come_last_is_refused_where_positions_count(kind: str) -> None:
    for read in readers().values():
        read(tensor(mask_of([4], 6), "bool"))
        assert REFUSED in refused(read, tensor(MASKS[kind], "bool"))


@masks
def test_a_plain_graph_refuses_it_when_it_runs(kind: str) -> None:
    encoder = Encoder(3)
    encoder(tensor(OUTPUTS))
    compute = tf.function(lambda mask: encoder(tensor(OUTPUTS), mask=mask).outputs)
    compute(tensor(mask_of([4], 6), "bool"))
    with pytest.raises(tf.errors.InvalidArgumentError, match=REFUSED):
        compute(tensor(MASKS[kind], "bool"))


def test_compiled_code_takes_the_mask_as_it_is() -> None:
    mask = tensor(MASKS["left"], "bool")
    assert (np.array(run("xla", lambda x: padding_last("mask", x), mask)) == mask.numpy()).all()
