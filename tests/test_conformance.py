"""Every public layer is an ordinary Keras layer. A test fails if `LAYERS` misses a layer."""

import importlib
import inspect
import itertools
import json
import pkgutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

import seq2seq_memattn
from seq2seq_memattn.attention.additive import BahdanauAttention
from seq2seq_memattn.attention.base import Attention
from seq2seq_memattn.attention.constant import ConstantAttention
from seq2seq_memattn.attention.flexible import FlexibleAttention
from seq2seq_memattn.attention.k_memory import KMemoryAttention
from seq2seq_memattn.attention.linear import LinearAttention
from seq2seq_memattn.attention.local import LocalAttention
from seq2seq_memattn.attention.multiplicative import KeyProjection, LuongAttention
from seq2seq_memattn.attention.no_attention import NoAttention
from seq2seq_memattn.config import ModelConfig
from seq2seq_memattn.layers.attention_cell import AttentionCell
from seq2seq_memattn.layers.attention_decoder import AttentionDecoder
from seq2seq_memattn.layers.bridge import Bridge
from seq2seq_memattn.layers.encoder import Encoder
from seq2seq_memattn.layers.tied_dense import TiedDense
from seq2seq_memattn.losses import TokenCrossEntropy
from seq2seq_memattn.model import Seq2Seq
from tests.inputs import lower_to_hlo, normal, randomise, tensor
from tests.marks import quick, slow
from tests.running import run_python
from tests.tolerances import as_array, assert_close

BATCH, QUERIES, SOURCE_LENGTH, ENCODER_UNITS, UNITS, EMBEDDING_DIM = 2, 3, 5, 6, 8, 7


class Case(NamedTuple):
    """How to make and apply a layer."""

    make: Callable[..., Any]  # (**options of a Keras layer) -> layer
    apply: Callable[[Any, Any, Any, Any], Any]  # (layer, outputs, mask, queries) -> results


def read(attention: Any, outputs: Any, mask: Any, queries: Any) -> Any:
    memory = attention.prepare(outputs, mask)
    state = attention.initial_state(memory, queries.shape[1])
    for _ in range(2):  # the second step reads the state; its positions are never rounded
        context, scores, state = attention.read(queries, memory, state, inputs=queries)
    return context, attention.alignment(scores, memory)


def step(cell: Any, outputs: Any, mask: Any, queries: Any) -> Any:
    memory = cell.attention.prepare(outputs, mask)
    state = cell.initial_state(memory, queries.shape[1])
    for _ in range(2):
        output, scores, state = cell(queries, memory, state)
    return output, scores, state.context


def encode(encoder: Any, outputs: Any, mask: Any, queries: Any) -> Any:
    del queries
    return tuple(encoder(outputs, mask=mask))


def bridge(bridge: Any, outputs: Any, mask: Any, queries: Any) -> Any:
    del mask
    return bridge([[[outputs[:, 0], outputs[:, 1]], [queries[:, 0], queries[:, 1]]]])


def translate(model: Any, outputs: Any, mask: Any, queries: Any) -> Any:
    """Applies a model to ids made from the signs of the arrays."""
    source = ops.where(outputs[:, :, 0] > 0, 3, 4) * ops.cast(mask, "int32")
    target = ops.where(queries[:, :, 0] > 0, 3, 4)
    return model({"source": source, "target_inputs": target})


def decode(decoder: Any, outputs: Any, mask: Any, queries: Any) -> Any:
    """Applies a decoder to the queries as embedded targets; the last target is shorter."""
    rows = ops.cumsum(ops.ones_like(queries[:, :1, 0], dtype="int32"), axis=0) - 1
    real = ops.arange(QUERIES) < QUERIES - rows
    return decoder(queries, outputs, inputs_mask=real, encoder_outputs_mask=mask)


JOINT: dict[str, Any] = {"tied_embeddings": "all", "source_vocab_size": 7, "mixing_units": 5}


def tiny(attention: str, **more: Any) -> ModelConfig:
    sizes = {
        "source_vocab_size": 6,
        "target_vocab_size": 7,
        "embedding_dim": 5,
        "encoder_units": 3,
        "encoder_layers": 1,
        "decoder_units": UNITS,
        "decoder_layers": 1,
        "attention_units": 4,
    }
    return ModelConfig(attention=attention, **{**sizes, **more})


def wrapping(attention: Any, wrapper: Any = AttentionCell, **options: Any) -> Any:
    """A maker of an `AttentionCell` or a decoder around cells with the same policy."""

    def make(**layer: Any) -> Any:
        policy = layer.get("dtype")
        cells = [keras.layers.LSTMCell(UNITS, dtype=policy), keras.layers.GRUCell(9, dtype=policy)]
        return wrapper(cells, attention(dtype=policy), **options, **layer)

    return make


LAYERS: dict[str, Case] = {
    "KMemoryAttention": Case(
        lambda **layer: KMemoryAttention(
            4, "sigmoid", "softmax", "time", "mean_one", 9, True, **layer
        ),
        read,
    ),
    "BahdanauAttention": Case(lambda **layer: BahdanauAttention(4, **layer), read),
    "LuongAttention": Case(lambda **layer: LuongAttention("general", UNITS, **layer), read),
    "LuongAttention dot": Case(
        lambda **layer: LuongAttention(**layer),
        lambda attention, outputs, mask, queries: read(
            attention, outputs, mask, queries[:, :, :ENCODER_UNITS]
        ),
    ),
    "LuongAttention concat": Case(lambda **layer: LuongAttention("concat", 4, **layer), read),
    "LuongAttention location": Case(
        lambda **layer: LuongAttention("location", None, 9, **layer), read
    ),
    "LocalAttention": Case(lambda **layer: LocalAttention(1, 4, **layer), read),
    "LocalAttention predictive": Case(
        lambda **layer: LocalAttention(1, UNITS, "predictive", "general", 0.7, **layer), read
    ),
    "FlexibleAttention": Case(lambda **layer: FlexibleAttention(4, 2.5, **layer), read),
    "FlexibleAttention windowed": Case(
        lambda **layer: FlexibleAttention(4, 1.0, 0.5, **layer), read
    ),
    "LinearAttention": Case(lambda **layer: LinearAttention(4, **layer), read),
    "ConstantAttention": Case(lambda **layer: ConstantAttention(True, **layer), read),
    "NoAttention": Case(NoAttention, read),
    "KeyProjection": Case(
        lambda **layer: KeyProjection(4, **layer),
        lambda projection, outputs, mask, queries: projection(outputs),
    ),
    "Encoder": Case(
        lambda **layer: Encoder(3, 2, "gru", stacking="concatenated", dropout=0.1, **layer), encode
    ),
    "Encoder per direction": Case(lambda **layer: Encoder(3, 2, seed=5, **layer), encode),
    "TiedDense": Case(
        lambda **layer: TiedDense(QUERIES, **layer),
        lambda dense, outputs, mask, queries: dense(
            outputs, queries[0, :, :ENCODER_UNITS]
        ),  # any rows are suitable
    ),
    "Bridge": Case(
        lambda **layer: Bridge("dense", [[3, 4], [5]], "backward", "tanh", **layer), bridge
    ),
    "AttentionCell": Case(
        wrapping(lambda **layer: KMemoryAttention(4, **layer), mixing_units=4), step
    ),
    "AttentionCell before": Case(
        wrapping(
            lambda **layer: BahdanauAttention(4, **layer),
            read="before",
            mixing_units=4,
            mixing_activation="linear",
            mixing_from="output",
        ),
        step,
    ),
    "AttentionDecoder": Case(
        wrapping(
            lambda **layer: KMemoryAttention(4, **layer),
            AttentionDecoder,
            mixing_units=4,
            dropout=0.1,
            seed=3,
            return_alignments=True,
            return_state=True,
        ),
        decode,
    ),
    "AttentionDecoder in parallel": Case(
        wrapping(
            lambda **layer: BahdanauAttention(4, **layer), AttentionDecoder, input_feeding=False
        ),
        decode,
    ),
    "Seq2Seq": Case(lambda **layer: Seq2Seq(tiny("k_memory:4"), **layer), translate),
    "Seq2Seq bahdanau": Case(lambda **layer: Seq2Seq(tiny("bahdanau"), **layer), translate),
    "Seq2Seq tied": Case(lambda **layer: Seq2Seq(tiny("k_memory:4", **JOINT), **layer), translate),
    "Seq2Seq none": Case(lambda **layer: Seq2Seq(tiny("none"), **layer), translate),
}
layers = pytest.mark.parametrize("name", LAYERS)
# One layer of each kind, because saving and precision do not depend on an attention's scores.
QUICK = (
    *("KMemoryAttention", "FlexibleAttention", "Encoder", "Bridge"),
    *("AttentionCell", "AttentionDecoder", "Seq2Seq"),
)
some_layers = pytest.mark.parametrize("name", quick(LAYERS, *QUICK))


def inputs(dtype: str = "float32", batch: int = BATCH, source_length: int = SOURCE_LENGTH) -> Any:
    outputs = normal(batch, source_length, ENCODER_UNITS)
    mask = np.arange(source_length) < source_length - np.arange(batch)[:, None]
    return (
        tensor(outputs, dtype),
        tensor(mask, "bool"),
        tensor(normal(batch, QUERIES, UNITS), dtype),
    )


def built(name: str, **options: Any) -> Any:
    """A built layer with random weights instead of its initial ones."""
    layer = LAYERS[name].make(**options)
    LAYERS[name].apply(layer, *inputs())
    randomise(layer)
    return layer


def results(name: str, layer: Any, *arguments: Any) -> Any:
    return keras.tree.flatten(LAYERS[name].apply(layer, *(arguments or inputs())))


# The list


def public_layers() -> set[str]:
    """The Keras layers defined by the package's modules, except abstract and private ones."""
    found = set()
    for module in pkgutil.walk_packages(seq2seq_memattn.__path__, "seq2seq_memattn."):
        for name, value in vars(importlib.import_module(module.name)).items():
            is_layer = inspect.isclass(value) and issubclass(value, keras.layers.Layer)
            if is_layer and value.__module__ == module.name and not inspect.isabstract(value):
                found.add(name)
    return {name for name in found if not name.startswith("_")}


def test_every_public_layer_is_in_the_list() -> None:
    assert public_layers() == {name.split()[0] for name in LAYERS}
    assert inspect.isabstract(Attention)


def test_a_new_layer_would_be_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    class NewAttention(KMemoryAttention):
        pass

    NewAttention.__module__ = "seq2seq_memattn.attention.k_memory"
    module = importlib.import_module("seq2seq_memattn.attention.k_memory")
    monkeypatch.setattr(module, "NewAttention", NewAttention, raising=False)
    assert "NewAttention" in public_layers()


# Configuration


@layers
def test_a_config_holds_numbers_and_names_and_rebuilds_the_layer(name: str) -> None:
    layer = LAYERS[name].make()
    config = json.loads(json.dumps(layer.get_config()))
    again = type(layer).from_config(config)
    assert again.get_config() == layer.get_config()
    assert again.name == layer.name
    results(name, again)
    results(name, layer)
    randomise(layer)
    again.set_weights(layer.get_weights())
    assert_close(results(name, again), results(name, layer))


@pytest.mark.parametrize("name", [name for name in LAYERS if not name.startswith("Seq2Seq")])
def test_a_frozen_layer_stays_frozen_when_it_is_loaded(name: str) -> None:
    layer = LAYERS[name].make()
    layer.trainable = False
    again = type(layer).from_config(json.loads(json.dumps(layer.get_config())))
    results(name, again)
    assert not any(variable.trainable for variable in again.variables)
    again.trainable = True
    results(name, layer)
    assert len(again.trainable_variables) == len(again.weights) == len(layer.weights)


@layers
def test_keras_serialises_the_layer_with_its_dtype(name: str) -> None:
    layer = LAYERS[name].make(dtype="mixed_bfloat16")
    saved = json.loads(json.dumps(keras.saving.serialize_keras_object(layer)))
    again = keras.saving.deserialize_keras_object(saved)
    assert type(again) is type(layer)
    policies = {inner.dtype_policy.name for inner in again._flatten_layers()}
    assert policies == {"mixed_bfloat16"}


# Files


class Reader(keras.Model):
    """A user's model with our cell and attention."""

    def __init__(self, units: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.units = units
        self.embedding = keras.layers.Embedding(6, EMBEDDING_DIM, mask_zero=True)
        self.encoder = keras.layers.LSTM(ENCODER_UNITS, return_sequences=True)
        self.cell = AttentionCell(
            keras.layers.GRUCell(units), KMemoryAttention(4, use_bias=True), mixing_units=4
        )
        self.out = keras.layers.Dense(3)

    def call(self, ids: Any) -> Any:
        embedded = self.embedding(ids)
        memory = self.cell.attention.prepare(self.encoder(embedded))
        state, outputs = self.cell.initial_state(memory, 1), []
        for index in range(3):
            output, _, state = self.cell(embedded[:, index, None], memory, state)
            outputs.append(self.out(output))
        return ops.concatenate(outputs, axis=1)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "units": self.units}


IDS = np.array([[3, 1, 5, 2], [4, 5, 2, 0]], np.int32)


ALL_ATTENTIONS: dict[str, dict[str, Any]] = {
    **dict.fromkeys(("k_memory:4", "bahdanau", "luong_general", "none", "constant"), {}),
    "luong_dot": {"encoder_projection_units": UNITS},
    "luong_concat": {},
    "luong_location": {"max_source_length": 5},
    **dict.fromkeys(("local_m", "local_p", "flexible", "linear"), {}),
}
MODELS: dict[str, Callable[[], Any]] = {
    name: lambda name=name: Seq2Seq(tiny(name, **ALL_ATTENTIONS[name]))  # type: ignore[misc]
    for name in ALL_ATTENTIONS
}
MODELS["tied"] = lambda: Seq2Seq(tiny("k_memory:4", tied_embeddings="target", mixing_units=5))
MODELS["one vocabulary"] = lambda: Seq2Seq(tiny("k_memory:4", **JOINT))
MODELS["a model of a user"] = lambda: Reader(UNITS)
saved_models = pytest.mark.parametrize(
    "name", quick(MODELS, "k_memory:4", "bahdanau", "tied", "a model of a user")
)


def answer(model: Any) -> Any:
    if isinstance(model, Reader):
        return as_array(model(tensor(IDS, "int32")))
    ids = {"source": tensor(IDS, "int32"), "target_inputs": tensor(IDS[:, :3], "int32")}
    return as_array(model(ids))


@saved_models
def test_a_model_comes_back_from_its_keras_file(name: str, tmp_path: Path) -> None:
    model = MODELS[name]()
    first = answer(model)
    randomise(model)
    assert (answer(model) != first).any()
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras", custom_objects={"Reader": Reader})
    assert type(again) is type(model)
    np.testing.assert_array_equal(answer(again), answer(model))


@saved_models
def test_a_model_reads_the_weights_of_another(name: str, tmp_path: Path) -> None:
    model, other = MODELS[name](), MODELS[name]()
    answer(model), answer(other)
    randomise(model)
    model.save_weights(tmp_path / "model.weights.h5")
    other.load_weights(tmp_path / "model.weights.h5")
    np.testing.assert_array_equal(answer(other), answer(model))


@pytest.mark.slow
def test_a_saved_model_keeps_its_dtype_and_optimiser(tmp_path: Path) -> None:
    model = Seq2Seq(tiny("k_memory:4"), dtype="mixed_bfloat16")
    model.compile("adam", TokenCrossEntropy())
    x, y = copy_task()
    model.fit(x, y, batch_size=16, epochs=1, verbose=0)
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    assert again.dtype_policy.name == "mixed_bfloat16"
    assert again.encoder.dtype_policy.name == "mixed_bfloat16"
    assert int(again.optimizer.iterations) == int(model.optimizer.iterations) == 4
    first = {key: ids[:2] for key, ids in x.items()}
    np.testing.assert_array_equal(as_array(again(first)), as_array(model(first)))
    again.fit(x, y, batch_size=16, epochs=1, verbose=0)


@some_layers
def test_a_layer_comes_back_from_a_saved_model(name: str, tmp_path: Path) -> None:
    layer = built(name)

    class Served(tf.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = layer

        @tf.function(input_signature=signature())
        def serve(self, outputs: Any, mask: Any, queries: Any) -> Any:
            return results(name, layer, outputs, mask, queries)

    tf.saved_model.save(Served(), tmp_path)
    again = tf.saved_model.load(tmp_path)
    for arguments in (inputs(), inputs(batch=3, source_length=4)):
        assert_close(list(again.serve(*arguments)), results(name, layer, *arguments))


def test_the_model_exports_as_keras_models_do(tmp_path: Path) -> None:
    model = Seq2Seq(tiny("k_memory:4"))
    randomise(model)
    ids = {
        name: tf.TensorSpec([None, None], tf.int32, name=name)
        for name in ("source", "target_inputs")
    }
    model.export(tmp_path, input_signature=[ids], verbose=False)
    again = tf.saved_model.load(tmp_path)
    for width in (3, 4):
        arguments = {"source": tensor(IDS), "target_inputs": tensor(IDS[:, :width])}
        arguments = {key: tf.cast(value, tf.int32) for key, value in arguments.items()}
        real = (IDS[:, :width] != 0)[:, :, None]
        assert_close(as_array(again.serve(arguments)) * real, as_array(model(arguments)) * real)


# Precision


@some_layers
@pytest.mark.parametrize("dtype", ["bfloat16", *slow("float16")])
def test_mixed_precision_agrees_with_single(name: str, dtype: str) -> None:
    single, mixed = built(name), built(name, dtype=f"mixed_{dtype}")
    mixed.set_weights(single.get_weights())
    with tf.GradientTape() as tape:
        ours = results(name, mixed)
        loss = sum(ops.sum(ops.cast(x, "float32")) for x in ours)
    kind = "float32" if name.startswith("Seq2Seq") else dtype
    assert {keras.backend.standardize_dtype(x.dtype) for x in ours} == {kind}
    assert_close(ours, results(name, single), dtype)
    if not mixed.trainable_variables:
        return
    gradients = tape.gradient(loss, [v.value for v in mixed.trainable_variables])
    assert {g.dtype for g in gradients if g is not None} == {tf.float32}
    assert all(
        np.isfinite(as_array(tf.convert_to_tensor(g))).all() for g in gradients if g is not None
    )


@some_layers
def test_double_precision_agrees_with_single(name: str) -> None:
    single, double = built(name), built(name, dtype="float64")
    double.set_weights(
        [w.astype("float64") if w.dtype.kind == "f" else w for w in single.get_weights()]
    )
    ours = results(name, double, *inputs("float64"))
    assert {keras.backend.standardize_dtype(x.dtype) for x in ours} == {"float64"}
    assert_close(ours, results(name, single))


STEP = 1e-6  # step of central differences; their error is about 1e-10


# The results of `NoAttention` do not depend on its inputs.
@pytest.mark.parametrize("name", [name for name in LAYERS if name != "NoAttention"])
def test_gradients_are_the_limits_of_differences(name: str) -> None:
    """Checked along one random direction of all weights and inputs, in double precision."""
    layer = built(name, dtype="float64")
    outputs, mask, queries = inputs("float64")
    generator = np.random.default_rng(3)
    at = [v.value for v in layer.trainable_variables] + [outputs, queries]
    at = [tf.convert_to_tensor(value) for value in at]
    direction = [tensor(generator.normal(size=value.shape), "float64") for value in at]
    shares = [
        tensor(generator.normal(size=value.shape), "float64")
        for value in results(name, layer, outputs, mask, queries)
    ]

    def loss(*values: Any) -> Any:
        *weights, outputs, queries = values
        mapping = list(zip(layer.trainable_variables, weights, strict=True))
        with keras.StatelessScope(state_mapping=mapping):
            found = results(name, layer, outputs, mask, queries)
        return sum(ops.sum(share * value) for share, value in zip(shares, found, strict=True))

    with tf.GradientTape() as tape:
        tape.watch(at)
        value = loss(*at)
    gradients = tape.gradient(value, at, unconnected_gradients="zero")
    along = sum(float(ops.sum(g * d)) for g, d in zip(gradients, direction, strict=True))
    ahead, behind = (
        float(loss(*(x + sign * STEP * d for x, d in zip(at, direction, strict=True))))
        for sign in (1, -1)
    )
    assert along == pytest.approx((ahead - behind) / (2 * STEP), rel=1e-6, abs=1e-8)
    assert abs(along) > 1e-3


# Graphs


def signature() -> list[tf.TensorSpec]:
    return [
        tf.TensorSpec([None, None, ENCODER_UNITS]),
        tf.TensorSpec([None, None], tf.bool),
        tf.TensorSpec([None, QUERIES, UNITS]),
    ]


@some_layers
def test_one_graph_serves_batches_and_sources_of_every_size(name: str) -> None:
    layer = built(name)

    @tf.function(input_signature=signature())
    def compute(outputs: Any, mask: Any, queries: Any) -> Any:
        return results(name, layer, outputs, mask, queries)

    for arguments in (inputs(), inputs(batch=3, source_length=4), inputs(batch=1, source_length=2)):
        assert_close(list(compute(*arguments)), results(name, layer, *arguments))
    assert compute.experimental_get_tracing_count() == 1


# Training


def copy_task(size: int = 64, longest: int = 3) -> tuple[dict[str, Any], Any]:
    """Sources of two to `longest` symbols from 3 to 5; the targets are the sources."""
    rng = np.random.default_rng(0)
    source, starts, outputs = (np.zeros([size, longest + 1], np.int32) for _ in range(3))
    for row in range(size):
        symbols = rng.integers(3, 6, size=rng.integers(2, longest + 1))
        source[row, : len(symbols) + 1] = outputs[row, : len(symbols) + 1] = [*symbols, 2]
        starts[row, : len(symbols) + 1] = [1, *symbols]
    return {"source": source, "target_inputs": starts}, outputs


@pytest.mark.slow
@pytest.mark.parametrize(
    ("attention", "policy"),
    [
        ("bahdanau", "mixed_float16"),
        ("k_memory:4", "mixed_bfloat16"),
        ("k_memory:4", "mixed_float16"),
        *((name, "float32") for name in ALL_ATTENTIONS),
    ],
)
def test_fit_lowers_the_loss_of_the_copy_task(attention: str, policy: str) -> None:
    options = {**ALL_ATTENTIONS[attention], "dropout": 0.1}
    model = Seq2Seq(tiny(attention, **options), dtype=policy)
    model.compile(keras.optimizers.Adam(0.03), TokenCrossEntropy())
    x, y = copy_task()
    losses = model.fit(x, y, batch_size=32, epochs=8, verbose=0).history["loss"]
    assert np.isfinite(losses).all()
    assert losses[-1] < 0.7 * losses[0]


@pytest.mark.parametrize("attention", ["k_memory:4", "bahdanau", "flexible"])
def test_xla_takes_updates_whose_sizes_are_unknown(attention: str) -> None:
    model = Seq2Seq(tiny(attention, bidirectional=False))
    model.compile("sgd", TokenCrossEntropy())
    assert "while" in lower_to_hlo(lambda *batch: model.train_step(batch), *copy_task(3))


@pytest.mark.parametrize("attention", slow(*ALL_ATTENTIONS))
def test_fit_compiled_by_xla_gives_the_same_loss(attention: str) -> None:
    batches = [copy_task(32), copy_task(24, longest=4)]  # of different sizes and lengths
    losses = []
    for jit_compile in (False, True):
        model = Seq2Seq(tiny(attention, **{"dropout": 0.0, **ALL_ATTENTIONS[attention]}))
        # Not Adam, which turns the rounding error of a zero gradient into a full step.
        model.compile(keras.optimizers.SGD(0.5), TokenCrossEntropy(), jit_compile=jit_compile)
        endless = (batch for batch in itertools.cycle(batches))
        history = model.fit(endless, steps_per_epoch=2, epochs=3, shuffle=False, verbose=0)
        losses.append(history.history["loss"])
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-4)


@pytest.mark.slow
def test_two_replicas_train_every_layer() -> None:
    process = run_python("-m", "tests.replicated_layers")
    assert process.returncode == 0, process.stderr.decode()[-3000:]
    names = {line.removeprefix("trained ") for line in process.stdout.decode().splitlines()}
    assert names == {name.split()[0] for name in LAYERS}
