"""Gradients on JAX in half precision: of long loops, embeddings and memories."""

import pytest

from tests.running import run_python

LOOP = """
import os
os.environ["KERAS_BACKEND"] = "jax"
import jax
import keras
import numpy as np
from keras import ops
from seq2seq_memattn.compute.precision import BFloat16Products
from seq2seq_memattn.loops.cell_steps import cell_step
from seq2seq_memattn.loops.scan import make_steps, scan_cell

STEPS, BATCH, UNITS = 400, 4, 8
random = np.random.default_rng(0)
inputs = ops.convert_to_tensor(random.normal(size=(BATCH, STEPS, 6)).astype("float32"))
kernel, recurrent = random.normal(size=(6, 32)), random.normal(size=(8, 32))
steps = make_steps(ops.full([BATCH], STEPS, "int32"), STEPS)


def gradient_of_recurrent_kernel(policy):
    cell = keras.layers.LSTMCell(UNITS, dtype=policy)
    cell.build((None, 6))
    cell.set_weights([0.3 * kernel, 0.3 * recurrent, np.zeros(32)])
    step = cell_step(cell, "cell", 6)

    def loss(value):
        with keras.StatelessScope(state_mapping=[(cell.recurrent_kernel, value)]):
            projected = step.project(steps.pack(inputs), training=True)
            first = [ops.zeros((BATCH, UNITS))] * 2
            return ops.sum(scan_cell(step, projected, first, steps, training=True)[0])

    return np.asarray(jax.grad(loss)(cell.recurrent_kernel.value))


exact = gradient_of_recurrent_kernel("float32")
found = gradient_of_recurrent_kernel(BFloat16Products())
most = 0.01  # summed over the steps in bfloat16, the error is 0.03
"""
EMBEDDING = """
import os
os.environ["KERAS_BACKEND"] = "jax"
import jax
import numpy as np
from keras import ops
from seq2seq_memattn.compute.rows import embed

random = np.random.default_rng(0)
ids = ops.convert_to_tensor(random.integers(0, 20, (80, 80)).astype("int32"))
upstream = random.normal(size=(80, 80, 8)) + 0.1


def gradient_of_table(dtype):
    def loss(table):
        rows = embed(ops.cast(table, dtype), ids)
        assert rows.dtype == dtype
        return ops.sum(ops.cast(rows * ops.cast(upstream, dtype), "float32"))

    return np.asarray(jax.grad(loss)(ops.zeros((20, 8))))


exact, found = gradient_of_table("float32"), gradient_of_table("bfloat16")
most = 0.005  # summed in bfloat16, the error is 0.02
"""
MEMORY = """
import os
os.environ["KERAS_BACKEND"] = "jax"
import jax
import keras
import numpy as np
from keras import ops
from seq2seq_memattn import AttentionDecoder, BahdanauAttention

random = np.random.default_rng(0)
inputs = random.normal(size=(4, 400, 6)).astype("float32")
outputs = ops.convert_to_tensor(random.normal(size=(4, 30, 8)).astype("float32"))
weights = []


def gradient_of_outputs(policy):
    attention = BahdanauAttention(8, dtype=policy)
    decoder = AttentionDecoder(keras.layers.GRUCell(8, dtype=policy), attention, dtype=policy)
    decoder(inputs, outputs)
    if not weights:
        weights.extend(random.normal(scale=0.5, size=each.shape) for each in decoder.weights)
    decoder.set_weights(weights)

    def loss(outputs):
        return ops.sum(ops.cast(decoder(inputs, outputs, training=True), "float32"))

    return np.asarray(jax.grad(loss)(outputs))


exact, found = gradient_of_outputs("float32"), gradient_of_outputs("mixed_bfloat16")
most = 0.012  # with keys summed in bfloat16, the error is 0.024
"""
CHECK = """
error = np.linalg.norm(found - exact) / np.linalg.norm(exact)
assert 0.0 < error < most, error
"""


@pytest.mark.slow
@pytest.mark.parametrize("program", [LOOP, EMBEDDING, MEMORY], ids=["loop", "embedding", "memory"])
def test_gradients_are_not_summed_in_bfloat16(program: str) -> None:
    done = run_python("-c", program + CHECK)
    assert done.returncode == 0, done.stderr.decode()
