import keras
import pytest
from keras import ops

from seq2seq_memattn.attention.k_memory import KMemoryAttention
from seq2seq_memattn.layers.attention_cell import AttentionCell
from seq2seq_memattn.search.folding import fold


def built(cell: keras.layers.Layer, **options: bool) -> AttentionCell:
    wrapped = AttentionCell(cell, KMemoryAttention(4), mixing_units=5, **options)
    memory = wrapped.attention.prepare(ops.zeros([1, 9, 8]))
    wrapped(ops.zeros([1, 1, 7]), memory, wrapped.initial_state(memory, num_queries=1))
    return wrapped


@pytest.mark.parametrize(
    ("cell", "gates"), [(keras.layers.LSTMCell(6), 24), (keras.layers.GRUCell(6), 18)]
)
def test_both_maps_of_a_context_that_is_fed_back_are_folded(
    cell: keras.layers.Layer, gates: int
) -> None:
    folds = fold(built(cell))
    assert folds is not None
    assert tuple(folds.context.shape) == (8, gates + 5)
    assert tuple(folds.output.shape) == (6, 5)


def test_a_cell_whose_gates_are_unknown_takes_its_context_as_it_is() -> None:
    assert fold(built(keras.layers.SimpleRNNCell(6))) is None
    folds = fold(built(keras.layers.SimpleRNNCell(6), input_feeding=False))
    assert folds is not None
    assert tuple(folds.context.shape) == (8, 5)
