"""Records results of TensorFlow Addons for the tests in this folder.

TensorFlow Addons does not work with Keras 3, so run this script by hand in a separate environment:

    python3.11 -m venv addons_env
    addons_env/bin/pip install tensorflow-cpu==2.15.1 tensorflow-addons==0.23.0
    TF_ADDONS_PY_OPS=1 addons_env/bin/python tests/addons/record.py

The script writes inputs, weights and results to the .npz files beside it. The stored files were
recorded with Python 3.11, TensorFlow 2.15.1, Keras 2.15.0, TensorFlow Addons 0.23.0 and NumPy
1.26.4. Record again only if this script changes, because rounding differs between machines.
"""

import inspect
from pathlib import Path

import numpy as np
import tensorflow as tf
import tensorflow_addons as tfa

HERE = Path(__file__).parent
BATCH, SOURCE_LENGTH, TARGET_LENGTH = 3, 5, 6
MEMORY_UNITS, UNITS, EMBEDDING_DIM = 6, 7, 4
ATTENTION_UNITS, LAYER_SIZE, VOCAB_SIZE = 8, 9, 11
SOURCE_LENGTHS = np.array([5, 3, 4], np.int32)
TARGET_LENGTHS = np.array([6, 4, 5], np.int32)
START_ID, END_ID = 1, 2
BEAM_WIDTH, MAXIMUM_ITERATIONS = 4, 9
PENALTIES = {
    "beam": {},
    "length_beam": {"length_penalty_weight": 0.6},
    "coverage_beam": {"coverage_penalty_weight": 0.1},
}
random = np.random.default_rng(36)  # one of the few seeds that give hypotheses of many lengths


def normal(*shape, scale=0.7):
    """Normally distributed float32 numbers."""
    return (scale * random.normal(size=shape)).astype(np.float32)


MEMORY = normal(BATCH, SOURCE_LENGTH, MEMORY_UNITS)  # padding is not 0, so masks matter


def weights_of(mechanism):
    """The weights of an attention mechanism, by the names that the tests use."""
    found = {"memory_kernel": mechanism.memory_layer.kernel}
    if mechanism.query_layer is not None:
        found["query_kernel"] = mechanism.query_layer.kernel
    for name in ("attention_v", "attention_g", "attention_b", "scale_weight"):
        if getattr(mechanism, name, None) is not None:
            found[name] = getattr(mechanism, name)
    return found


def randomise(weights):
    """Assigns random values to variables."""
    for variable in weights.values():
        variable.assign(normal(*variable.shape))


def arrays(prefix, named):
    """Named tensors as NumPy arrays, with a common prefix."""
    return {f"{prefix}.{name}": np.asarray(value) for name, value in named.items()}


def set_up(mechanism, memory=MEMORY, copies=1):
    """Gives a mechanism its memory, each source `copies` times."""
    tiled = tfa.seq2seq.tile_batch([memory, SOURCE_LENGTHS], copies)
    mechanism.setup_memory(tiled[0], memory_sequence_length=tiled[1])


def make_mechanism(kind):
    """An attention mechanism with random weights and the memory."""
    mechanism = {
        "bahdanau": lambda: tfa.seq2seq.BahdanauAttention(ATTENTION_UNITS),
        "bahdanau_normalize": lambda: tfa.seq2seq.BahdanauAttention(
            ATTENTION_UNITS, normalize=True
        ),
        "luong": lambda: tfa.seq2seq.LuongAttention(UNITS),
        "luong_scale": lambda: tfa.seq2seq.LuongAttention(UNITS, scale=True),
    }[kind]()
    set_up(mechanism)
    mechanism([normal(BATCH, UNITS), np.zeros([BATCH, SOURCE_LENGTH], np.float32)])  # builds it
    randomise(weights_of(mechanism))
    set_up(mechanism)  # again, with the new weights
    return mechanism


def record_attention():
    """Alignments and contexts of each attention mechanism, for queries at three steps."""
    queries = normal(BATCH, 3, UNITS)
    found = {"memory": MEMORY, "source_lengths": SOURCE_LENGTHS, "queries": queries}
    for kind in ("bahdanau", "bahdanau_normalize", "luong", "luong_scale"):
        mechanism = make_mechanism(kind)
        state = np.zeros([BATCH, SOURCE_LENGTH], np.float32)
        alignments = np.stack([mechanism([q, state])[0] for q in queries.swapaxes(0, 1)], axis=1)
        found |= arrays(kind, weights_of(mechanism))
        found |= arrays(
            kind, {"alignments": alignments, "contexts": alignments @ np.asarray(mechanism.values)}
        )
    return found


def make_wrapper(cell, kind, **options):
    """An `AttentionWrapper` with random weights, and these weights by name."""
    mechanism = make_mechanism(kind)
    wrapper = tfa.seq2seq.AttentionWrapper(cell, mechanism, **options)
    wrapper(normal(BATCH, EMBEDDING_DIM), wrapper.get_initial_state(normal(BATCH, EMBEDDING_DIM)))
    weights = {f"cell_{index}": weight for index, weight in enumerate(cell.weights)}
    if wrapper._attention_layers:
        (layer,) = wrapper._attention_layers
        weights |= dict(zip(("layer_kernel", "layer_bias"), layer.weights, strict=False))
    randomise(weights)
    return wrapper, {**weights, **weights_of(mechanism)}


def initial_state(wrapper, cell_state=None, copies=1):
    """The state before the first step."""
    state = wrapper.get_initial_state(batch_size=copies * BATCH, dtype=tf.float32)
    if cell_state is None:
        return state
    cell_state = tfa.seq2seq.tile_batch(cell_state, copies)
    return state.clone(cell_state=cell_state)


def record_wrapper():
    """Outputs of `AttentionWrapper` over the same inputs, configured in eight ways."""
    inputs = normal(BATCH, TARGET_LENGTH, EMBEDDING_DIM)
    cell_state = [normal(BATCH, UNITS), normal(BATCH, UNITS)]
    found = {
        "memory": MEMORY,
        "source_lengths": SOURCE_LENGTHS,
        "inputs": inputs,
        "state_h": cell_state[0],
        "state_c": cell_state[1],
    }
    lstm, gru = tf.keras.layers.LSTMCell, tf.keras.layers.GRUCell
    tanh = tf.keras.layers.Dense(LAYER_SIZE, "tanh")
    cases = {
        "context_fed": (lstm, "bahdanau", {"output_attention": False}, cell_state),
        "context_out": (gru, "luong", {}, cell_state[0]),
        "layer_out": (lstm, "luong_scale", {"attention_layer_size": LAYER_SIZE}, None),
        "layer_fed": (
            lstm,
            "bahdanau_normalize",
            {"attention_layer_size": LAYER_SIZE, "output_attention": False},
            None,
        ),
        "nothing_fed": (
            gru,
            "bahdanau",
            {"attention_layer": tanh, "cell_input_fn": lambda inputs, attention: inputs},
            cell_state[0],
        ),
        "layer_from_states": (
            lstm,
            "bahdanau",
            {"attention_layer_size": LAYER_SIZE},
            cell_state,
        ),
        "tanh_layer_fed": (
            gru,
            "luong",
            {"attention_layer": tf.keras.layers.Dense(LAYER_SIZE, "tanh")},
            cell_state[0],
        ),
        "layer_of_stack": (
            lambda units: tf.keras.layers.StackedRNNCells([lstm(units), gru(units)]),
            "luong",
            {"attention_layer_size": LAYER_SIZE},
            None,
        ),
    }
    for name, (cell, kind, options, start) in cases.items():
        wrapper, weights = make_wrapper(cell(UNITS), kind, alignment_history=True, **options)
        state, outputs = initial_state(wrapper, start), []
        for step in range(TARGET_LENGTH):
            output, state = wrapper(inputs[:, step], state)
            outputs.append(output)
        history = np.swapaxes(state.alignment_history.stack(), 0, 1)
        found |= arrays(name, weights)
        found |= arrays(
            name, {"outputs": np.stack(outputs, 1), "alignments": history, "last": state.attention}
        )
    return found


def make_model(name):
    """A decoder with an output layer, and the arrays that the tests need to rebuild it."""
    if name == "layer":
        options = {"attention_layer_size": LAYER_SIZE}
        cell_state, kind = None, "luong_scale"
    else:
        options = {"output_attention": False}
        cell_state, kind = [normal(BATCH, UNITS), normal(BATCH, UNITS)], "bahdanau"
    wrapper, weights = make_wrapper(tf.keras.layers.LSTMCell(UNITS), kind, **options)
    to_logits = tf.keras.layers.Dense(VOCAB_SIZE)
    to_logits.build([None, wrapper.output_size])
    bias = normal(VOCAB_SIZE)
    bias[:END_ID] = -1e4  # never padding or the start token, which our search excludes
    bias[END_ID] = 1.5  # without this bias, few hypotheses would end
    to_logits.set_weights([normal(wrapper.output_size, VOCAB_SIZE, scale=1.0), bias])
    weights |= {"logits_kernel": to_logits.kernel, "logits_bias": to_logits.bias}
    if cell_state is not None:
        weights |= {"state_h": cell_state[0], "state_c": cell_state[1]}
    return wrapper, to_logits, cell_state, weights


def record_decoding():
    """Teacher forcing, greedy decoding and beam search of two models with the same encoder."""
    embed = tf.keras.layers.Embedding(VOCAB_SIZE, EMBEDDING_DIM, mask_zero=True)
    encoder = tf.keras.layers.Bidirectional(
        tf.keras.layers.LSTM(MEMORY_UNITS // 2, return_sequences=True)
    )
    real = np.arange(SOURCE_LENGTH) < SOURCE_LENGTHS[:, None]
    source = np.where(real, random.integers(END_ID, VOCAB_SIZE, real.shape), 0).astype(np.int32)
    encoder(embed(source))  # builds both
    for layer in (embed, encoder):
        layer.set_weights([normal(*weight.shape, scale=1.0) for weight in layer.weights])
    memory = encoder(embed(source))
    targets = random.integers(END_ID + 1, VOCAB_SIZE, [BATCH, TARGET_LENGTH]).astype(np.int32)
    targets[:, 0] = START_ID
    found = {
        "source": source,
        "embeddings": embed.embeddings,
        **{f"encoder.{index}": weight for index, weight in enumerate(encoder.get_weights())},
        "memory": memory,
        "target_inputs": targets,
        "target_lengths": TARGET_LENGTHS,
    }
    for name in ("layer", "context"):
        wrapper, to_logits, cell_state, weights = make_model(name)
        (mechanism,) = wrapper._attention_mechanisms
        set_up(mechanism, memory)
        state = initial_state(wrapper, cell_state)
        found |= arrays(name, weights | decode_one(wrapper, to_logits, embed, targets, state))
        set_up(mechanism, memory, BEAM_WIDTH)
        state = initial_state(wrapper, cell_state, BEAM_WIDTH)
        for kind, penalties in PENALTIES.items():
            found |= arrays(
                f"{name}.{kind}", decode_beam(wrapper, to_logits, embed, state, penalties)
            )
    return found


def decode_one(wrapper, to_logits, embed, targets, state):
    """Logits along given targets, and the targets of greedy decoding."""
    forced, _, _ = tfa.seq2seq.BasicDecoder(
        wrapper, tfa.seq2seq.TrainingSampler(), to_logits, impute_finished=True
    )(tf.gather(embed.embeddings, targets), initial_state=state, sequence_length=TARGET_LENGTHS)
    greedy, _, lengths = tfa.seq2seq.BasicDecoder(
        wrapper,
        tfa.seq2seq.GreedyEmbeddingSampler(),
        to_logits,
        maximum_iterations=MAXIMUM_ITERATIONS,
    )(embed.embeddings, start_tokens=[START_ID] * BATCH, end_token=END_ID, initial_state=state)
    return {
        "logits": forced.rnn_output,
        "greedy_ids": greedy.sample_id,
        "greedy_lengths": lengths,
    }


def decode_beam(wrapper, to_logits, embed, state, penalties):
    """The last beam of beam search."""
    output, last, _ = tfa.seq2seq.BeamSearchDecoder(
        wrapper,
        BEAM_WIDTH,
        output_layer=to_logits,
        maximum_iterations=MAXIMUM_ITERATIONS,
        **penalties,
    )(embed.embeddings, start_tokens=[START_ID] * BATCH, end_token=END_ID, initial_state=state)
    return {
        "ids": np.swapaxes(output.predicted_ids, 1, 2),
        "log_probs": last.log_probs,
        "lengths": last.lengths,
        "finished": last.finished,
        "scores": output.beam_search_decoder_output.scores[:, -1],
    }


def record_functions():
    """Losses, small functions, and the public names of `tfa.seq2seq`."""
    logits = normal(BATCH, TARGET_LENGTH, VOCAB_SIZE, scale=2.0)
    targets = random.integers(1, VOCAB_SIZE, [BATCH, TARGET_LENGTH]).astype(np.int32)
    real = np.arange(TARGET_LENGTH) < TARGET_LENGTHS[:, None]
    targets = np.where(real, targets, 0)
    real = real.astype(np.float32)
    weights = real * random.uniform(0.5, 2.0, real.shape).astype(np.float32)
    chances = random.uniform(size=[BATCH, SOURCE_LENGTH]).astype(np.float32)
    chances[0, 2] = 0.0
    step_ids = random.integers(3, 9, [4, BATCH, 3]).astype(np.int32)
    step_ids[2, 0] = END_ID
    parent_ids = random.integers(0, 3, [4, BATCH, 3]).astype(np.int32)
    each = {"average_across_timesteps": True, "average_across_batch": False}
    none = dict.fromkeys(("average_across_timesteps", "average_across_batch"), False)
    sequence_loss = tfa.seq2seq.sequence_loss
    return {
        "logits": logits,
        "targets": targets,
        "real": real,
        "weights": weights,
        "mean_loss": sequence_loss(logits, targets, real),
        "loss_of_each_sentence": sequence_loss(logits, targets, real, **each),
        "loss_of_each_token": sequence_loss(logits, targets, real, **none),
        "summed_weighted_loss": tfa.seq2seq.SequenceLoss()(targets, logits, weights),
        "chances": chances,
        "hardmax": tfa.seq2seq.hardmax(chances),
        "safe_cumprod": tfa.seq2seq.safe_cumprod(chances, axis=1, exclusive=True),
        "tile_batch": tfa.seq2seq.tile_batch(chances, 2),
        "step_ids": step_ids,
        "parent_ids": parent_ids,
        "gather_tree": tfa.seq2seq.gather_tree(step_ids, parent_ids, [4] * BATCH, END_ID),
        "public_names": np.array(
            sorted(
                name
                for name, value in vars(tfa.seq2seq).items()
                if not name.startswith("_") and not inspect.ismodule(value)
            )
        ),
    }


def main():
    """Records everything."""
    records = {
        "decoding": record_decoding,
        "attention": record_attention,
        "wrapper": record_wrapper,
        "functions": record_functions,
    }
    for name, record in records.items():
        np.savez_compressed(HERE / f"{name}.npz", **record())


if __name__ == "__main__":
    main()
