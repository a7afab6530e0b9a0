from typing import Any, Literal, get_args, get_origin, get_type_hints

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from seq2seq_memattn import model as model_module
from seq2seq_memattn.config import ModelConfig
from seq2seq_memattn.losses import summed_cross_entropy
from seq2seq_memattn.model import Seq2Seq
from tests import as_reference
from tests.errors import refused
from tests.inputs import randomise, tensor
from tests.loops.test_scan import run
from tests.marks import quick, slow
from tests.tolerances import as_array, assert_close

SOURCE = np.array([[9, 4, 7, 5, 2], [8, 3, 2, 0, 0], [2, 0, 0, 0, 0]], np.int32)
SOURCE_LENGTHS = (5, 3, 1)
TARGET_INPUTS = np.array([[1, 4, 10, 0], [1, 7, 3, 12], [1, 11, 0, 0]], np.int32)
TARGET_OUTPUTS = np.array([[4, 10, 2, 0], [7, 3, 12, 2], [11, 2, 0, 0]], np.int32)
REAL = (TARGET_INPUTS != 0)[:, :, None]

OPTIONS: dict[str, dict[str, Any]] = {
    "reference": {},
    "bahdanau": {"attention": "bahdanau"},
    "luong_dot": {"attention": "luong_dot", "encoder_projection_units": 8},
    "luong_general": {"attention": "luong_general", "encoder_stacking": "concatenated"},
    "constant": {"attention": "constant", "read": "before", "decoder_layers": 1},
    "luong_concat": {"attention": "luong_concat", "decoder_layers": 1},
    "luong_location": {"attention": "luong_location", "max_source_length": 6},
    "local_m": {"attention": "local_m", "half_window": 1, "decoder_layers": 1},
    "local_p": {"attention": "local_p", "half_window": 2, "decoder_layers": 1},
    "flexible": {"attention": "flexible", "read": "before", "decoder_layers": 1},
    "flexible_window": {"attention": "flexible", "threshold": 0.5, "decoder_layers": 1},
    "flexible_unfed": {"attention": "flexible", "input_feeding": False, "decoder_layers": 1},
    "linear": {"attention": "linear", "decoder_layers": 1},
    "none": {"attention": "none"},
    "none_unfed": {"attention": "none", "input_feeding": False, "mixing": "tanh"},
    "sigmoids": {"encoder_score": "sigmoid", "decoder_score": "sigmoid", "attention_bias": True},
    "positions": {"position_encoding": "mean_one", "max_source_length": 6},
    "masked_positions": {
        "position_encoding": "masked",
        "max_source_length": 6,
        "bridge": "zero",
        "initializer": "uniform_0.1",
    },
    "summed_positions": {
        "position_encoding": "sum_to_one",
        "max_source_length": 6,
        "initializer": "glorot",
    },
    "over_slots": {
        "normalise_over": "slots",
        "encoder_layers": 3,
        "encoder_stacking": "concatenated",
    },
    "one_direction": {"bidirectional": False, "encoder_layers": 1, "bridge": "dense"},
    "gru": {"encoder_cell": "gru", "decoder_cell": "gru", "bridge": "dense", "bridge_from": "top"},
    "copy": {"bridge": "copy", "decoder_units": 6},
    "backward": {"bridge": "dense", "bridge_from": "backward", "bridge_activation": "tanh"},
    "before": {"attention": "bahdanau", "read": "before", "decoder_layers": 3},
    "before_unfed": {"read": "before", "input_feeding": False, "mixing": "linear"},
    "unfed": {"input_feeding": False, "decoder_layers": 1, "mixing_units": 9},
    "unmixed": {"mixing": "none", "mixing_from": "output_and_context"},
    "from_output": {"mixing": "tanh", "mixing_from": "output"},
    "unmixed_output": {"mixing": "none", "mixing_from": "output", "input_feeding": False},
    "tied": {"tied_embeddings": "target", "mixing_units": 5},
    "joint": {
        "tied_embeddings": "all",
        "source_vocab_size": 13,
        "attention": "bahdanau",
        "mixing": "none",
        "embedding_dim": 14,  # the width of decoder output and context together
    },
}
SIZES: dict[str, Any] = {
    "source_vocab_size": 11,
    "target_vocab_size": 13,
    "embedding_dim": 5,
    "encoder_units": 3,
    "decoder_units": 8,
    "attention": "k_memory:4",
    "attention_units": 7,
}

# Together, these have most options of the others, in other combinations.
QUICK = ("reference", "bahdanau", "flexible", "none", "positions", "gru", "before_unfed", "joint")
options = pytest.mark.parametrize("name", quick(OPTIONS, *QUICK))


def test_every_choice_of_every_option_is_in_some_line() -> None:
    kinds = get_type_hints(ModelConfig)
    for name, kind in kinds.items():
        if get_origin(kind) is Literal:
            tried = {option.get(name, getattr(ModelConfig(), name)) for option in OPTIONS.values()}
            assert tried == set(get_args(kind)), name


some_options = pytest.mark.parametrize(
    "name",
    [
        *("reference", "bahdanau", "none", "unfed"),
        *slow("luong_dot", "over_slots", "positions", "before"),
    ],
)


def build(name: str = "reference", dtype: str = "float64", **more: Any) -> Seq2Seq:
    """A model with random weights as large as trained ones."""
    model = Seq2Seq(ModelConfig(**{**SIZES, "dropout": 0.0, **OPTIONS[name], **more}), dtype=dtype)
    randomise(model)
    return model


def batch(rows: Any = slice(None)) -> dict[str, Any]:
    return {
        "source": tensor(SOURCE[rows], "int32"),
        "target_inputs": tensor(TARGET_INPUTS[rows], "int32"),
    }


def logits_of(model: Seq2Seq, mode: str = "eager", training: bool = False) -> Any:
    """Logits, 0 on padding."""
    logits = run(mode, lambda inputs: model(inputs, training=training), batch())
    return as_array(logits) * REAL


@options
def test_logits_equal_the_equations(name: str) -> None:
    model = build(name)
    expected = as_reference.teacher_forced_logits(model, SOURCE, SOURCE_LENGTHS, TARGET_INPUTS)
    assert_close(logits_of(model), expected * REAL, "float64")


@some_options
def test_padded_logits_equal_packed_ones(name: str) -> None:
    model = build(name)
    assert_close(logits_of(model, "eager_padded"), logits_of(model), "float64")


@pytest.mark.parametrize(
    ("name", "dtype"), [("reference", "float32"), ("bahdanau", "float64"), ("unfed", "float32")]
)
def test_logits_of_a_graph_equal_the_equations(name: str, dtype: str) -> None:
    model = build(name, dtype)
    expected = as_reference.teacher_forced_logits(model, SOURCE, SOURCE_LENGTHS, TARGET_INPUTS)
    assert_close(logits_of(model, "graph"), expected * REAL, dtype)


@some_options
def test_teacher_forced_logits_equal_those_of_single_steps(name: str) -> None:
    model = build(name)
    inputs = batch()
    memory, cell_states = model.encode(inputs["source"])
    state, every = model.cell.initial_state(memory, 1, cell_states), []
    for step in range(TARGET_INPUTS.shape[1]):
        embedded = model.target_embedding(inputs["target_inputs"][:, step, None])
        output, _, state = model.cell(embedded, memory, state)
        every.append(model.to_logits(output)[:, 0])
    expected = as_array(ops.stack(every, axis=1)) * REAL
    assert_close(logits_of(model, training=True), expected, "float64")


@pytest.mark.parametrize(
    "name", quick(OPTIONS, "reference", "bahdanau", "none", "unfed", "local_m", "flexible_window")
)
def test_padding_changes_logits_by_rounding_only(name: str) -> None:
    model = build(name, max_source_length=6)
    longer = {key: ops.pad(ids, [[0, 0], [0, 4]]) for key, ids in batch().items()}
    logits = as_array(model(longer))[:, : TARGET_INPUTS.shape[1]]
    assert_close(logits * REAL, logits_of(model), "float64")


@some_options
def test_the_batch_changes_logits_by_rounding_only(name: str) -> None:
    model = build(name)
    together = logits_of(model)
    for row in range(len(SOURCE)):
        alone = as_array(model(batch(slice(row, row + 1)))) * REAL[row]
        assert_close(alone[0], together[row], "float64")
    turned = as_array(model(batch([2, 0, 1]))) * REAL[[2, 0, 1]]
    assert_close(turned, together[[2, 0, 1]], "float64")


@pytest.mark.parametrize(
    "name", ["reference", "bahdanau", "unfed", "none", "local_p", "flexible", "flexible_window"]
)
def test_rows_of_padding_alone_leave_the_others_as_they_are(name: str) -> None:
    model = build(name)
    inputs = batch()
    for key in inputs:
        inputs[key] = ops.concatenate([inputs[key], ops.zeros_like(inputs[key][:2])])
    logits = as_array(model(inputs))
    assert np.isfinite(logits).all()
    assert_close(logits[:3] * REAL, logits_of(model), "float64")


@pytest.mark.parametrize("name", ["reference", "constant", *slow("bahdanau", "unfed", "none")])
@pytest.mark.parametrize("mode", ["graph", *slow("eager")])
def test_a_batch_may_be_empty(name: str, mode: str) -> None:
    model = build(name)
    logits = run(mode, lambda inputs: model(inputs, training=True), batch(slice(0, 0)))
    assert tuple(logits.shape) == (0, 4, 13)


@pytest.mark.parametrize("dtype", ["uint8", "int16", "uint64", "float32"])
def test_ids_of_any_numeric_dtype_are_the_same_ids(dtype: str) -> None:
    model = build("reference")
    given = {"source": SOURCE, "target_inputs": TARGET_INPUTS}
    inputs = {name: ids.astype(dtype) for name, ids in given.items()}
    expected = model(batch(), training=True)
    np.testing.assert_array_equal(model(inputs, training=True), expected)
    tensors = {name: tensor(ids, dtype) for name, ids in given.items()}
    np.testing.assert_array_equal(model(tensors, training=True), expected)


def test_floats_are_not_rounded_to_other_ids() -> None:
    config = ModelConfig(source_vocab_size=300, encoder_units=8, decoder_units=8, attention="none")
    model = Seq2Seq(config, dtype="mixed_bfloat16")
    sources = np.array([[257, 2]])
    targets = np.array([[1, 4]])
    logits = [
        as_array(model({"source": source, "target_inputs": targets}))
        for source in (sources, sources.astype("float32"), sources - [[1, 0]])
    ]
    np.testing.assert_array_equal(logits[0], logits[1])
    assert (logits[0] != logits[2]).any()


def test_a_frozen_model_has_frozen_layers() -> None:
    model = Seq2Seq(build("reference").config, trainable=False)
    assert not model.trainable_variables
    assert not any(variable.trainable for variable in model.variables)
    assert not Seq2Seq.from_config(model.get_config()).trainable_variables


# Gradients


def gradients_of(model: Seq2Seq, training: bool, inputs: Any) -> Any:
    with tf.GradientTape() as tape:
        loss, _ = summed_cross_entropy(TARGET_OUTPUTS, model(inputs, training=training))
    weights = [variable.value for variable in model.trainable_variables]
    return tape.gradient(loss, weights, unconnected_gradients="zero")


def dense(gradients: Any) -> list[Any]:
    return [tf.convert_to_tensor(gradient) for gradient in gradients]


@pytest.mark.parametrize(
    "name",
    [
        "reference",
        "unfed",
        *slow("bahdanau", "gru", "joint", "luong_dot", "sigmoids", "over_slots", "copy", "tied"),
    ],
)
def test_the_fast_gradients_equal_plain_ones(name: str) -> None:
    model = build(name)
    plain = dense(run("eager_padded", lambda inputs: gradients_of(model, False, inputs), batch()))
    fast = dense(gradients_of(model, True, batch()))
    for variable, ours, expected in zip(model.trainable_variables, fast, plain, strict=True):
        assert_close(ours, expected, "float64")
        assert as_array(expected).any(), variable.path


@pytest.mark.parametrize(
    ("name", "mode"), slow(("bahdanau", "graph"), ("unfed", "graph"), ("reference", "xla"))
)
def test_compiled_gradients_equal_plain_ones(name: str, mode: str) -> None:
    model = build(name, encoder_layers=1)
    plain = dense(run("eager_padded", lambda inputs: gradients_of(model, False, inputs), batch()))
    fast = run(mode, lambda inputs: dense(gradients_of(model, True, inputs)), batch())
    assert_close(list(fast), plain, "float64")


# "joint" has one vocabulary for both sides, so a token's embedding has several uses.
EMBEDDED_LATE = [
    ("joint", 0.0),
    ("unfed", 0.5),
    *slow(("reference", 0.5), ("unfed", 0.0), ("flexible", 0.5), ("gru", 0.0)),
]


@pytest.mark.parametrize(("name", "dropout"), EMBEDDED_LATE)
def test_a_small_vocabulary_changes_rounding_only(
    name: str, dropout: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for limit in (0, 100):
        monkeypatch.setattr(model_module, "SMALL_VOCABULARY", limit)
        model = build(name, dropout=dropout)  # draws the same dropout
        found.append([logits_of(model), *map(as_array, dense(gradients_of(model, True, batch())))])
    assert_close(found[1], found[0], "float64")


@pytest.mark.parametrize("name", ["joint", *slow("tied")])
def test_the_gradient_of_tied_embeddings_is_that_of_all_their_uses(name: str) -> None:
    model = build(name)
    table = model.target_embedding.embeddings
    gradients = dense(gradients_of(model, True, batch()))
    (ours,) = [
        as_array(gradient)
        for variable, gradient in zip(model.trainable_variables, gradients, strict=True)
        if variable is table
    ]
    values, step = as_array(table), 1e-6
    # 1: start token; 10: on both sides; 9: only in sources; 12: fed back; 6: only in logits.
    for row, column in ((1, 0), (10, 1), (9, 2), (12, 4), (6, 3)):
        moved = []
        for sign in (1, -1):
            changed = values.copy()
            changed[row, column] += sign * step
            table.assign(changed)
            moved.append(loss_of(model))
        numeric = (moved[0] - moved[1]) / (2 * step)
        assert abs(numeric) > 1e-4
        np.testing.assert_allclose(ours[row, column], numeric, rtol=1e-5, atol=1e-7)


def loss_of(model: Seq2Seq) -> float:
    return float(summed_cross_entropy(TARGET_OUTPUTS, model(batch()))[0])


# Dropout


@pytest.mark.parametrize("name", ["reference", "unfed", "bahdanau"])
def test_dropout_is_drawn_anew_for_batches_of_any_size_and_off_outside_of_training(
    name: str,
) -> None:
    model, without = build(name, dropout=0.5), build(name)
    without.set_weights([as_array(weight) for weight in _kernels(model)] + _seeds(without))
    first, second = logits_of(model, training=True), logits_of(model, training=True)
    assert (first != second)[:, 0].any()
    assert as_array(model(batch(slice(0, 2)), training=True)).shape == (2, 4, 13)
    expected = logits_of(without)
    assert_close(logits_of(model), expected, "float64")
    assert (np.abs(first - expected) > 1e-3)[np.repeat(REAL, 13, axis=2)].mean() > 0.9


def _kernels(model: Seq2Seq) -> list[Any]:
    return [weight for weight in model.weights if keras.backend.is_float_dtype(weight.dtype)]


def _seeds(model: Seq2Seq) -> list[Any]:
    return [w.numpy() for w in model.weights if not keras.backend.is_float_dtype(w.dtype)]


@pytest.mark.parametrize("name", ["reference", "unfed"])
def test_the_mean_over_dropout_is_near_the_logits_without(name: str) -> None:
    model = build(name, dropout=0.05)
    many = {key: ops.repeat(ids[1:2], 400, axis=0) for key, ids in batch().items()}
    mean = np.mean(as_array(model(many, training=True)), axis=0)
    expected = as_array(model(batch(slice(1, 2))))[0]
    np.testing.assert_allclose(mean, expected, rtol=0, atol=0.1 * np.abs(expected).max())


# Weights


def test_weights_exist_before_the_first_batch() -> None:
    model = Seq2Seq(ModelConfig(**SIZES))
    assert model.built
    count = model.count_params()
    model(batch())
    assert model.count_params() == count


def test_the_toy_model_has_the_sizes_of_the_reference() -> None:
    shapes = {w.path: tuple(w.shape) for w in Seq2Seq(ModelConfig()).weights}
    assert shapes["encoder/encoder_backward_1/lstm_cell/kernel"] == (256, 1024)
    assert shapes["decoder/decoder_cell_0/kernel"] == (256 + 512, 1024)
    assert shapes["decoder/decoder_mixing/kernel"] == (256 + 512, 256)
    assert shapes["attention_encoder_energy/kernel"] == (512, 32)
    assert shapes["logits/kernel"] == (256, 23)


@pytest.mark.parametrize("name", ["reference", "bahdanau", "luong_general", "copy"])
def test_the_seed_decides_every_weight(name: str) -> None:
    models = [
        Seq2Seq(ModelConfig(**{**SIZES, **OPTIONS[name], "seed": seed})) for seed in (3, 3, 4)
    ]
    for first, same, other in zip(*map(_kernels, models), strict=True):
        np.testing.assert_array_equal(as_array(first), as_array(same))
        assert "bias" in first.path or (as_array(first) != as_array(other)).all(), first.path


@pytest.mark.parametrize("initializer", ["reference", "glorot", "uniform_0.1"])
def test_no_two_kernels_begin_alike(initializer: Any) -> None:
    same = dict.fromkeys(("embedding_dim", "encoder_units", "decoder_units"), 6)
    model = Seq2Seq(ModelConfig(**{**SIZES, **same, "initializer": initializer}))
    kernels = [w for w in model.trainable_variables if "bias" not in w.path]
    firsts = [float(as_array(w).flat[0] / np.abs(as_array(w)).max()) for w in kernels]
    assert len(set(firsts)) == len(kernels)


@pytest.mark.parametrize(("initializer", "limit"), [("reference", 0.04), ("uniform_0.1", 0.1)])
def test_cells_and_embeddings_begin_uniform_within_the_named_limit(
    initializer: Any, limit: float
) -> None:
    model = Seq2Seq(ModelConfig(**{**SIZES, "initializer": initializer}))
    cells = [w for w in model.weights if "cell" in w.path and "bias" not in w.path]
    assert len(cells) == 12
    for weight in [*cells, model.source_embedding.embeddings, model.target_embedding.embeddings]:
        largest = np.abs(as_array(weight)).max()
        assert 0.8 * limit < largest <= limit, weight.path
    assert np.abs(as_array(model.logits.kernel)).max() > 0.2


def test_the_defaults_with_and_without_attention_are_those_of_the_reference() -> None:
    reading, basic = build("reference"), build("none")
    assert (reading.bridge.kind, reading.cell.mixing_activation) == ("zero", "tanh")
    assert reading.cell.mixing_units == 8
    assert (basic.bridge.kind, basic.cell.mixing) == ("dense", None)


@pytest.mark.parametrize(
    ("dtype", "compute", "weights"),
    [
        ("float64", "float64", "float64"),
        ("mixed_bfloat16", "bfloat16", "float32"),
        ("mixed_float16", "float16", "float32"),
    ],
)
@pytest.mark.parametrize("way", ["argument", "global policy"])
def test_the_dtype_holds_for_every_layer(dtype: str, compute: str, weights: str, way: str) -> None:
    if way == "argument":
        model = Seq2Seq(ModelConfig(**SIZES), dtype=dtype)
    else:
        before = keras.config.dtype_policy()
        keras.config.set_dtype_policy(dtype)
        model = Seq2Seq(ModelConfig(**SIZES))
        keras.config.set_dtype_policy(before)
    layers = model._flatten_layers(include_self=True)
    wrong = {layer.name for layer in layers if layer.compute_dtype != compute}
    assert not wrong
    assert {weight.dtype for weight in _kernels(model)} == {weights}
    logits = model(batch(), training=True)
    assert logits.dtype == ("float64" if dtype == "float64" else "float32")


@pytest.mark.parametrize(
    ("name", "paths"),
    [
        ("tied", {"source_embedding/embeddings": (11, 5), "target_embedding/embeddings": (13, 5)}),
        ("joint", {"target_embedding/embeddings": (13, 14)}),
    ],
)
def test_tied_embeddings_are_there_once(name: str, paths: dict[str, tuple[int, ...]]) -> None:
    shapes = [(w.path, tuple(w.shape)) for w in build(name).weights]
    found = {path: shape for path, shape in shapes if "embedding" in path or "logits" in path}
    assert found == {**paths, "logits/bias": (13,)}
    assert len(set(shapes)) == len(shapes)


@options
def test_the_config_knows_what_the_output_layer_reads(name: str) -> None:
    model = build(name)
    assert as_reference.output_weights(model)[0].shape == (model.config.output_units, 13)


# Errors


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"tied_embeddings": "target"}, "embedding_dim is 5, that width is 8 "),
        ({"tied_embeddings": "target", "mixing_units": 6}, "embedding_dim is 5, that width is 6 "),
        ({"tied_embeddings": "target", "mixing": "none"}, "embedding_dim is 5, that width is 14 "),
        (
            {"tied_embeddings": "all", "mixing_units": 5},
            "source_vocab_size is 11, target_vocab_size is 13",
        ),
    ],
)
def test_what_cannot_be_tied_is_refused_with_both_sizes(
    wrong: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=f"`tied_embeddings` .*{message}"):
        ModelConfig(**{**SIZES, **wrong})


@pytest.mark.parametrize(
    "attention", ["memory", "k_memory", "k_memory:0", "k_memory:-1", "k_memory:x", "bahdanau:7"]
)
def test_an_unknown_attention_is_named(attention: str) -> None:
    with pytest.raises(ValueError, match=f"`attention` must be .*; got '{attention}'"):
        build(attention=attention)


def test_dot_attention_of_other_widths_names_both_and_the_remedy() -> None:
    message = "got 6 and 8 units.*`encoder_projection_units` 8"
    with pytest.raises(ValueError, match=message):
        build(attention="luong_dot")


def test_a_copy_bridge_between_other_widths_names_both() -> None:
    with pytest.raises(ValueError, match="got 2 x lstm of 6 units and 2 x lstm of 8"):
        build(bridge="copy")


def test_a_bridge_from_the_backward_direction_needs_one() -> None:
    with pytest.raises(ValueError, match="`bridge_from` backward needs a bidirectional encoder"):
        build(bridge="dense", bridge_from="backward", bidirectional=False)


def test_constant_attention_takes_no_projection() -> None:
    with pytest.raises(ValueError, match="`attention` constant takes the encoder's states as they"):
        build(attention="constant", encoder_projection_units=4)


def test_position_encodings_without_a_length_are_refused() -> None:
    with pytest.raises(ValueError, match="`max_source_length`"):
        build(position_encoding="masked")


def test_inputs_that_do_not_fit_together_are_refused() -> None:
    model, ids = build(), np.ones([3, 4], np.int32)
    for inputs, message in (
        ({"source": ids, "target_inputs": ids[:2]}, "`target_inputs`: expected batch 3; got 2."),
        ({"source": ids[:1], "target_inputs": ids}, "`target_inputs`: expected batch 1; got 3."),
        ({"source": ids[0], "target_inputs": ids}, "`source`: expected shape [batch, length]; "),
        ({"source": [[3]], "target_inputs": ids}, "`source`: expected an array [batch, length]; "),
        ([ids, ids], "`inputs`: expected a dictionary with ['source', 'target_inputs']; got list"),
        ({"source": ids}, "`inputs`: expected a dictionary with ['source', 'target_inputs']; got"),
    ):
        assert refused(model, inputs).startswith(message)


def test_a_config_may_be_a_dict_and_unknown_options_are_named() -> None:
    config = ModelConfig(**SIZES)
    assert Seq2Seq(config.to_dict()).config == config
    with pytest.raises(ValueError, match="Unknown option 'num_slots'"):
        Seq2Seq({**config.to_dict(), "num_slots": 3})


def test_encoding_once_serves_every_target() -> None:
    model = build()
    memory, states = model.encode(batch()["source"])
    assert tuple(memory.rows.shape) == (3, 4, 6)
    assert_close(
        as_array(model.teacher_force(batch()["target_inputs"], memory, states)[0]) * REAL,
        logits_of(model),
        "float64",
    )
