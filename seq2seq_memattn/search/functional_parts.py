"""The parts of a functional Keras model that search runs one by one."""

from typing import Any

import keras
from keras import ops

from seq2seq_memattn.compute.private import attached_mask, calls_in, maker
from seq2seq_memattn.layers.attention_decoder import AttentionDecoder


def parts_of(model: Any) -> tuple[Any, Any, Any, Any]:
    """The encoder, target embedding, decoder and output layer of a functional model.

    Raises:
        ValueError: if the model is not functional or has other parts; see `Searchable.from_model`.
    """
    calls = calls_in(model, AttentionDecoder)
    if len(calls) != 1:
        raise ValueError(
            "`model`: expected a functional model with one call of an AttentionDecoder; got "
            f"{type(model).__name__} with {len(calls)}."
        )
    decoder, args, kwargs, decoded = calls[0]
    embedded, encoded, initial_state = args
    mask = kwargs.get("encoder_outputs_mask")
    if mask is None and attached_mask(encoded) is None:
        mask = ops.ones_like(encoded[:, :, 0], dtype="bool")
    read = [one for one in (encoded, initial_state, mask) if one is not None]
    logits = [
        output
        for output in model.outputs
        if output is not decoded and any(one is decoded for one in _behind([output]))
    ]
    if not logits:
        raise ValueError("`model`: expected logits, computed from the decoder's outputs; got none.")
    encode = keras.Model(_only("source", _inputs_of(keras.tree.flatten(read))), read)
    embedding = _layer_between(_only("target", _inputs_of([embedded])), embedded)
    return encode, embedding, decoder, _layer_between(decoded, logits[0])


def _inputs_of(tensors: list[Any]) -> list[Any]:
    """The inputs from which symbolic tensors are computed."""
    return [one for one in _behind(tensors) if isinstance(maker(one)[0], keras.layers.InputLayer)]


def _behind(tensors: list[Any]) -> list[Any]:
    """All symbolic tensors from which some are computed, and these."""
    found: dict[int, Any] = {}
    waiting = list(tensors)
    while waiting:
        tensor = waiting.pop()
        if id(tensor) not in found:
            found[id(tensor)] = tensor
            waiting += maker(tensor)[1]
    return list(found.values())


def _only(name: str, inputs: list[Any]) -> Any:
    if len(inputs) != 1:
        raise ValueError(
            f"`model`: expected one input from which the {name} is computed; got {len(inputs)}."
        )
    return inputs[0]


def _layer_between(start: Any, end: Any) -> Any:
    """The layer that makes one tensor of another, or a model of the layers between them."""
    operation, taken = maker(end)
    is_alone = len(taken) == 1 and taken[0] is start
    if is_alone and isinstance(operation, keras.layers.Layer):
        return operation
    return keras.Model(start, end)
