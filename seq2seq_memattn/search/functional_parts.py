"""The parts of a functional Keras model that search runs one by one."""

from typing import Any

import keras
import numpy as np
from keras import ops

from seq2seq_memattn.compute.precision import NARROW
from seq2seq_memattn.compute.private import Call, attached_mask, calls_in, maker
from seq2seq_memattn.layers.attention_decoder import AttentionDecoder

# Relative tolerance, above the rounding error of a few layers. True: for float16 and bfloat16.
ROUNDING = {True: 0.03, False: 1e-3}


def parts_of(model: Any) -> tuple[Any, Any, Any, Any]:
    """The encoder, target embedding, decoder and output layer of a functional model.

    Raises:
        ValueError: if the model is not functional or does not consist of these parts; see
            `Searchable.from_model`.
    """
    calls = calls_in(model, AttentionDecoder)
    if len(calls) != 1:
        raise ValueError(
            "`model`: expected a functional model with one call of an AttentionDecoder, not in an "
            f"inner model; got {type(model).__name__} with {len(calls)}."
        )
    decoder, args, kwargs, (decoded, *_) = calls[0]
    embedded, encoded, initial_state = args
    mask = kwargs.get("encoder_outputs_mask")
    if mask is not None:
        mask = ops.cast(mask, "bool")
    elif attached_mask(encoded) is None:
        mask = _AttachedMask()(encoded)
    decoder_reads = [one for one in (encoded, initial_state, mask) if one is not None]
    encode = keras.Model(
        _only("input from which the source is computed", _inputs_of(decoder_reads)), decoder_reads
    )
    target = _only("input from which the target is computed", _inputs_of([embedded]))
    logits = _only(
        "output that is computed from the decoder's outputs",
        [one for one in model.outputs if one is not decoded and _is_behind(decoded, one)],
    )
    return encode, _steps("target", target, embedded), decoder, _steps("logits", decoded, logits)


def _inputs_of(tensors: Any) -> list[Any]:
    """The inputs from which symbolic tensors are computed."""
    found = _behind(keras.tree.flatten(tensors))
    return [one for one in found if isinstance(maker(one).layer, keras.layers.InputLayer)]


def _is_behind(tensor: Any, end: Any) -> bool:
    """Whether the symbolic tensor `end` is computed from `tensor`."""
    return any(one is tensor for one in _behind([end]))


def _behind(tensors: list[Any], start: Any = None) -> list[Any]:
    """The tensors and all that they are computed from, but nothing from before `start`."""
    found: dict[int, Any] = {}
    waiting = list(tensors)
    while waiting:
        tensor = waiting.pop()
        if id(tensor) not in found:
            found[id(tensor)] = tensor
            waiting += [] if tensor is start else _taken(maker(tensor))
    return list(found.values())


def _taken(call: Call) -> list[Any]:
    """The symbolic tensors that a call took."""
    given = keras.tree.flatten([call.args, call.kwargs])
    return [one for one in given if isinstance(one, keras.KerasTensor)]


@keras.saving.register_keras_serializable(package="seq2seq_memattn")
class _AttachedMask(keras.layers.Layer):
    """The mask that Keras attaches to an array when the model runs; all true if there is none.

    The symbolic output of an inner model, or of a layer that a user wrote, has no mask, although
    the array that is computed for it may have one.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{"autocast": False} | kwargs)
        self.supports_masking = True

    def call(self, x: Any, mask: Any = None) -> Any:
        return ops.ones(ops.shape(x)[:2], "bool") if mask is None else ops.cast(mask, "bool")

    def compute_output_spec(self, x: Any, mask: Any = None) -> keras.KerasTensor:
        del mask
        return keras.KerasTensor(x.shape[:2], "bool")


def _only(what: str, found: list[Any]) -> Any:
    if len(found) != 1:
        raise ValueError(f"`model`: expected one {what}; got {len(found)}.")
    return found[0]


class _Replay(keras.layers.Layer):
    """Runs the layers between two symbolic tensors again, without masks and in inference mode.

    `keras.Model(start, end)` would need the inputs from which the masks were computed.

    Raises:
        ValueError: if `end` is not computed from `start` alone.
    """

    def __init__(self, start: Any, end: Any, name: str) -> None:
        super().__init__(autocast=False, name=name)
        makers = [maker(tensor).layer for tensor in _behind([end], start) if tensor is not start]
        if any(isinstance(one, keras.layers.InputLayer) for one in makers):
            raise ValueError(
                f"`model`: expected {name} computed from {start.name} alone; got more inputs."
            )
        self.start, self.end = start, end
        self.layers = [one for one in makers if isinstance(one, keras.layers.Layer)]

    def call(self, x: Any, training: bool = False) -> Any:
        del training  # Keras hands it to the layers
        made = {id(self.start): x}

        def value(tensor: Any) -> Any:
            if id(tensor) not in made:
                call = maker(tensor)
                args, kwargs = keras.tree.map_structure(
                    lambda one: value(one) if isinstance(one, keras.KerasTensor) else one,
                    (call.args, call.kwargs),
                )
                outputs = keras.tree.flatten(call.layer(*args, **kwargs))
                made.update(zip(map(id, call.outputs), outputs, strict=True))
            return made[id(tensor)]

        return value(self.end)


def _steps(name: str, start: Any, end: Any) -> Any:
    """The layer, or a `_Replay` of the layers, that maps each step of `start` to one of `end`.

    Search calls it with one step at a time, so its output at a step may depend only on that step.

    Raises:
        ValueError: if `end` needs more inputs than `start`, or if the layers do not process each
            step independently.
    """
    call = maker(end)
    is_alone = len(call.args) == 1 and call.args[0] is start
    found = call.layer
    if not (is_alone and not call.kwargs and isinstance(found, keras.layers.Layer)):
        found = _Replay(start, end, name)
    generator = np.random.default_rng(1)
    if len(start.shape) == 2:
        steps = ops.cast([[1, 2]], start.dtype)  # ids that every vocabulary has
    else:
        steps = ops.cast(generator.normal(size=(1, 2, start.shape[-1])), start.dtype)
    whole = found(steps, training=False)
    rounding = ROUNDING[keras.backend.standardize_dtype(whole.dtype) in NARROW]
    whole = np.array(ops.cast(whole, "float32"))
    parts = [found(steps[:, one : one + 1], training=False) for one in (0, 1)]
    alone = np.array(ops.cast(ops.concatenate(parts, axis=1), "float32"))
    if np.abs(whole - alone).max() > rounding * np.abs(whole).max():
        raise ValueError(
            f"`model`: expected layers for the {name} that process each step independently; got "
            "layers between the target's embedding and the logits that read other steps or "
            "positions."
        )
    return found
