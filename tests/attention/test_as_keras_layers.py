"""Attentions can be called like Keras's own: `attention([queries, outputs])`."""

import copy
import pickle
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from seq2seq_memattn.attention.base import Attention
from seq2seq_memattn.attention.k_memory import KMemoryAttention
from seq2seq_memattn.attention.local import LocalAttention
from seq2seq_memattn.attention.multiplicative import LuongAttention
from seq2seq_memattn.attention.registry import ATTENTION_NAMES
from tests.errors import refused
from tests.inputs import mask_of, normal, randomise, tensor
from tests.layers.test_decoder_conformance import ATTENTIONS, UNITS, attention_of, encoder_units
from tests.marks import quick
from tests.search.models import ATTENTIONS as SEARCHED
from tests.test_conformance import ALL_ATTENTIONS
from tests.tolerances import as_array, assert_close

BATCH, QUERIES, SOURCE_LENGTH = 2, 3, 5
MASK = mask_of((5, 2), SOURCE_LENGTH)
STATEFUL = {"local_m", "flexible", "flexible with a window"}
STATELESS = [name for name in ATTENTIONS if name not in STATEFUL]
stateless = pytest.mark.parametrize("name", STATELESS)
some_stateless = pytest.mark.parametrize("name", quick(STATELESS, "k_memory", "local_p"))


def arrays(name: str) -> list[Any]:
    """Queries and encoder outputs."""
    sizes = [(BATCH, QUERIES, UNITS), (BATCH, SOURCE_LENGTH, encoder_units(name))]
    return [tensor(normal(*size)) for size in sizes]


def made(name: str) -> Attention:
    attention = attention_of(name, "float32")
    attention(arrays(name))
    randomise(attention)
    return attention


def expected(attention: Attention, queries: Any, outputs: Any, mask: Any, training: bool) -> Any:
    """Context and scores from `prepare` and `read`; for scores of a window, the alignment."""
    memory = attention.prepare(outputs, mask)
    context, scores, _ = attention.read(queries, memory, training=training)
    return context, scores if ops.is_tensor(scores) else attention.alignment(scores, memory)


def test_every_attention_is_here() -> None:
    searched = [options["attention"] for options in SEARCHED.values()]
    names, stored, searched_names = (
        {name.partition(":")[0] for name in kinds}
        for kinds in (ATTENTION_NAMES, ALL_ATTENTIONS, searched)
    )
    assert names == stored == searched_names
    found = {name: attention_of(name, "float32") for name in ATTENTIONS}
    assert {
        name for name, layer in found.items() if layer.keeps_state or layer.needs_inputs
    } == STATEFUL


@stateless
@pytest.mark.parametrize("training", [False, True])
def test_the_result_is_that_of_prepare_and_read(name: str, training: bool) -> None:
    attention, (queries, outputs) = made(name), arrays(name)
    mask = tensor(MASK, "bool")
    context, scores = expected(attention, queries, outputs, mask, training)
    options = {"mask": [None, mask], "training": training}
    found = attention([queries, outputs], return_attention_scores=True, **options)
    assert isinstance(found, tuple)
    assert_close(list(found), [context, scores])
    assert_close(attention([queries, outputs], **options), context)
    assert not as_array(found[1])[1, :, 2:].any() or scores.shape[2] != SOURCE_LENGTH


@stateless
def test_a_functional_model_takes_lengths_of_none_and_a_mask(name: str) -> None:
    attention = made(name)
    query, value = keras.Input((None, UNITS)), keras.Input((None, encoder_units(name)))
    value_mask = keras.Input((None,), dtype="bool")
    found = attention([query, value], mask=[None, value_mask], return_attention_scores=True)
    model = keras.Model([query, value, value_mask], found)
    assert found[0].shape[:2] == found[1].shape[:2] == (None, None)
    queries, outputs = arrays(name)
    for length in (SOURCE_LENGTH, SOURCE_LENGTH - 1):
        given = queries[:, 1:], outputs[:, :length], tensor(MASK[:, :length], "bool")
        assert_close(list(model(given)), list(expected(attention, *given, training=False)))
    assert found[0].shape[2] == model(given)[0].shape[2]


@some_stateless
def test_the_example_of_the_docstring_comes_back_from_its_file(name: str, tmp_path: Path) -> None:
    query, value = keras.Input((None, UNITS)), keras.Input((None, encoder_units(name)))
    value_mask = keras.Input((None,), dtype="bool")
    found = attention_of(name, "float32")(
        [query, value], mask=[None, value_mask], return_attention_scores=True
    )
    model = keras.Model([query, value, value_mask], found)
    randomise(model)
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    given = [*arrays(name), tensor(MASK, "bool")]
    for ours, theirs in zip(again(given), model(given), strict=True):
        np.testing.assert_array_equal(as_array(ours), as_array(theirs))


@stateless
def test_a_copy_has_weights_of_its_own_and_gives_the_same(name: str) -> None:
    attention, given = made(name), arrays(name)
    again = pickle.loads(pickle.dumps(copy.deepcopy(attention)))
    assert again.built
    assert len(again.weights) == len(attention.weights)
    assert not {id(weight) for weight in attention.weights} & set(map(id, again.weights))
    np.testing.assert_array_equal(as_array(again(given)), as_array(attention(given)))


def test_a_copy_of_an_attention_that_was_never_called_is_built_by_its_first_call() -> None:
    attention = KMemoryAttention(3)
    copies = copy.deepcopy(attention), KMemoryAttention.from_config(attention.get_config())
    for again in copies:
        assert not again.weights
        again(arrays("k_memory"))
        assert again.weights


# Masks attached by Keras


def of_ids(attention: Attention) -> keras.Model:
    """A model that embeds ids, to which Keras attaches masks, and ends in a layer that uses one."""
    query, value = (keras.Input((None,), dtype="int32") for _ in range(2))
    embedding = keras.layers.Embedding(9, UNITS, mask_zero=True)
    encoder = keras.layers.GRU(UNITS, return_sequences=True)
    context, scores = attention(
        [embedding(query), encoder(embedding(value))], return_attention_scores=True
    )
    return keras.Model([query, value], [context, scores, keras.layers.GRU(4)(context)])


@stateless
def test_masks_that_keras_attached_are_used(name: str) -> None:
    attention = attention_of(name, "float32")
    model = of_ids(attention)
    randomise(model)
    queries, sources = [[3, 4, 5], [6, 0, 0]], [[3, 4, 5, 6, 7], [8, 3, 0, 0, 0]]
    context, scores, last = map(as_array, model([tensor(queries, "int32"), tensor(sources)]))
    assert not context[1, 1:].any() and (name == "none" or context[0].any())
    short = model([tensor([[6]], "int32"), tensor([[8, 3]], "int32")])
    assert_close(context[1, :1], as_array(short[0])[0])
    width = 2 if scores.shape[2] == len(sources[0]) else scores.shape[2]
    assert_close(scores[1, :1, :width], as_array(short[1])[0])
    assert not scores[1, :, width:].any()
    # The layer after the attention skips the masked queries.
    assert_close(last[1], as_array(short[2])[0])


def test_a_mask_given_wins_over_those_attached() -> None:
    attention, layer = KMemoryAttention(8), keras.layers.Embedding(9, UNITS, mask_zero=True)
    queries, outputs = layer(tensor([[3, 0]])), layer(tensor([[4, 0, 5]]))
    given = tensor([[True, True, False]], "bool")
    context, _ = expected(attention, queries, outputs, given, training=False)
    assert_close(attention([queries, outputs], mask=[None, given]), context)


# Windows


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("compiled", [False, True])
def test_scores_of_a_window_are_a_tensor_over_the_source(training: bool, compiled: bool) -> None:
    attention = LocalAttention(1, UNITS, "predictive")

    def read(queries: Any, outputs: Any) -> Any:
        return attention([queries, outputs], training=training, return_attention_scores=True)

    read(*arrays("local_p"))
    randomise(attention)
    context, scores = (tf.function(read) if compiled else read)(*arrays("local_p"))
    assert ops.is_tensor(scores)
    assert tuple(scores.shape) == (BATCH, QUERIES, SOURCE_LENGTH)
    assert_close(context, ops.matmul(scores, arrays("local_p")[1]))
    assert ((as_array(scores) > 0).sum(axis=2) <= 3).all()


# Errors


@pytest.mark.parametrize("name", sorted(STATEFUL))
def test_one_that_keeps_a_state_says_what_runs_it(name: str) -> None:
    message = refused(attention_of(name, "float32"), arrays(name))
    assert "run it in an AttentionDecoder" in message


@pytest.mark.parametrize("name", sorted(STATEFUL))
@pytest.mark.parametrize("state", [(), None], ids=str)
def test_one_that_keeps_a_state_refuses_to_read_without_it(name: str, state: Any) -> None:
    attention, (queries, outputs) = attention_of(name, "float32"), arrays(name)
    memory = attention.prepare(outputs)
    message = refused(attention.read, queries, memory, state, inputs=queries)
    record = type(attention.initial_state(memory, QUERIES))
    assert message.startswith(f"`state`: expected {record.__name__}({', '.join(record._fields)}), ")


def test_other_widths_are_refused_once_there_are_weights() -> None:
    attention, (queries, outputs) = made("k_memory"), arrays("k_memory")
    for given, name in [
        ([queries[:, :, 1:], outputs], "queries"),
        ([queries, outputs[:, :, 1:]], "encoder_outputs"),
    ]:
        assert refused(attention, given).startswith(f"`{name}`: expected units ")
    dot = LuongAttention()  # has no weights
    for units in (3, 4):
        dot([queries[:, :, :units], outputs[:, :, :units]])
    location = LuongAttention("location", max_source_length=20)  # its weights read queries alone
    for units in (3, 4):
        location([queries, outputs[:, :, :units]])
    assert refused(location, [queries[:, :, 1:], outputs]).startswith("`queries`: expected units ")


@pytest.mark.parametrize("name", ATTENTIONS)
def test_wrong_shapes_are_refused_by_prepare_and_read(name: str) -> None:
    attention, (queries, outputs) = attention_of(name, "float32"), arrays(name)
    for arguments, message in [
        ((outputs[0],), "`encoder_outputs`: expected shape [batch, source_length, units]; got"),
        ((outputs, MASK[0]), "`mask`: expected shape [batch, length]; got [5]"),
        ((outputs, MASK[:, 1:]), "`mask`: expected length 5; got 4."),
        ((outputs, MASK[:1]), "`mask`: expected batch 2; got 1."),
    ]:
        assert refused(attention.prepare, *arguments).startswith(message)
    message = refused(attention.read, queries[:, 0], attention.prepare(outputs))
    assert message.startswith("`queries`: expected shape [batch, queries, units]; got [2, 6]")


def test_other_arguments_are_refused_in_one_line() -> None:
    attention, (queries, outputs) = KMemoryAttention(8), arrays("k_memory")
    inputs = "`inputs`: expected a list of two, for the queries and the encoder's outputs"
    for given, message in [
        (queries, f"{inputs}; got {type(queries).__name__}."),
        ([queries], f"{inputs}; got 1."),
        ([queries[0], outputs], "`queries`: expected shape [batch, length, units]; got [3, 6]"),
        ([queries, outputs[0]], "`encoder_outputs`: expected shape [batch, length, units]; got"),
        ([queries[:1], outputs], "`encoder_outputs`: expected batch 1; got 2."),
    ]:
        assert refused(attention, given).startswith(message)
    for mask, message in [
        (MASK, "`mask`: expected a list of two, for the queries and the encoder's outputs; got nd"),
        ([MASK, None], "`mask of queries`: expected length 3; got 5."),
        ([None, MASK[:, 1:]], "`mask of encoder_outputs`: expected length 5; got 4."),
        ([None, MASK[0]], "`mask of encoder_outputs`: expected shape [batch, length]; got [5]"),
    ]:
        assert refused(attention, [queries, outputs], mask=mask).startswith(message)
