"""TensorFlow Addons: `AttentionWrapper` and `BeamSearchDecoder` in a TensorFlow graph.

`--attention` is `bahdanau` or `luong`. Run this file as a module from the root of the repository.
If it is run as a script, it hides the package `tensorflow_addons`, because both have the same name.
"""

import os
import warnings
from importlib.metadata import version
from typing import Any

import numpy as np

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
# TensorFlow 2.15 cannot trace a stack of cells with the C extension of wrapt on Python 3.11.
os.environ["WRAPT_DISABLE_EXTENSIONS"] = "1"

import tensorflow as tf

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # TensorFlow Addons warns that its development has ended
    import tensorflow_addons as tfa

from experiments.benchmarks.peers.protocol import (
    Batch,
    Decode,
    Setting,
    System,
    Update,
    run,
    until_end,
)

PADDING, START, END = 0, 1, 2
NUM_SPECIAL = 3
NEVER = -1e9  # logit of a token that must not be chosen
MECHANISMS = {"bahdanau": tfa.seq2seq.BahdanauAttention, "luong": tfa.seq2seq.LuongAttention}


class Model(tf.Module):
    """A bidirectional two-layer encoder, and a two-layer decoder in an `AttentionWrapper`.

    Args:
        size: int > 0. Size of the vocabulary.
        units: int > 0. Width of all layers.
        attention: a name in `MECHANISMS`.
    """

    def __init__(self, size: int, units: int, attention: str) -> None:
        super().__init__()
        layers = tf.keras.layers
        self.source_embedding, self.target_embedding = (
            layers.Embedding(size, units) for _ in range(2)
        )
        self.directions = [
            [layers.LSTM(units, return_sequences=True) for _ in range(2)] for _ in range(2)
        ]
        self.mechanism = MECHANISMS[attention](units)
        self.cell = tfa.seq2seq.AttentionWrapper(
            layers.StackedRNNCells([layers.LSTMCell(units) for _ in range(2)]),
            self.mechanism,
            attention_layer=layers.Dense(units, "tanh"),
        )
        self.logits = layers.Dense(size)
        self._make_weights()

    def _make_weights(self) -> None:
        """Creates the weights in one eager step, because the loop of a graph cannot create any."""
        ids, lengths = tf.constant([[START]]), tf.constant([1])
        state = self.start(self.encode(ids, lengths), lengths)
        self.logits(self.cell(self.target_embedding(ids[:, 0]), state)[0])

    def encode(self, ids: Any, lengths: Any) -> Any:
        """Encodes sources [sentences, source_length] to [sentences, source_length, 2 * units].

        Each direction is a stack of its own, as in this project.
        """
        mask = tf.sequence_mask(lengths, tf.shape(ids)[1])
        embedded = self.source_embedding(ids)
        outputs = []
        for is_backward, stack in enumerate(self.directions):
            sequence = tf.reverse_sequence(embedded, lengths, 1) if is_backward else embedded
            for layer in stack:
                sequence = layer(sequence, mask=mask)
            outputs.append(tf.reverse_sequence(sequence, lengths, 1) if is_backward else sequence)
        return tf.concat(outputs, 2)

    def start(self, memory: Any, lengths: Any) -> Any:
        """Sets the memory of the attention; returns the decoder's first state, zeros."""
        self.mechanism.setup_memory(memory, memory_sequence_length=lengths)
        return self.cell.get_initial_state(batch_size=tf.shape(memory)[0], dtype=tf.float32)


class ForcedLogits(tf.keras.layers.Layer):
    """Logits that make hypotheses end at the length of their source and not before.

    Args:
        logits: the model's output layer.
        lengths: int32 [sentences]. Lengths of the sources.
    """

    def __init__(self, logits: Any, lengths: Any) -> None:
        super().__init__()
        self.logits = logits
        self.lengths = lengths
        self.step: Any = None  # the number of the step, set by `ForcedDecoder`

    def call(self, outputs: Any) -> Any:
        logits = self.logits(outputs)  # [sentences, beam, size]
        is_end = tf.range(self.logits.units) == END
        forced = tf.where(self.lengths <= self.step, -NEVER, NEVER)[:, None, None]
        return tf.where(is_end, forced, logits)

    def compute_output_shape(self, shape: Any) -> Any:
        """Returns the shape of the logits."""
        return self.logits.compute_output_shape(shape)


class ForcedDecoder(tfa.seq2seq.BeamSearchDecoder):
    """A beam search that passes the number of the step to `ForcedLogits`."""

    def step(self, time: Any, inputs: Any, state: Any, *others: Any, **more: Any) -> Any:
        """Performs one step of the search."""
        self._output_layer.step = time
        return super().step(time, inputs, state, *others, **more)


def make_model(setting: Setting) -> Model:
    """Builds the model of a setting."""
    tf.keras.utils.set_random_seed(0)
    tf.config.threading.set_intra_op_parallelism_threads(setting.threads)
    tf.config.threading.set_inter_op_parallelism_threads(setting.threads)
    return Model(setting.vocab + NUM_SPECIAL, setting.units, setting.attention)


def _in_graph(function: Any) -> Any:
    """Compiles a function of ids [sentences, source_length] and lengths into a single graph."""
    ids, lengths = tf.TensorSpec([None, None], tf.int32), tf.TensorSpec([None], tf.int32)
    return tf.function(function, input_signature=[ids, lengths])


def _tensors(batch: Batch) -> tuple[Any, Any]:
    ids = batch.ids(NUM_SPECIAL, PADDING).astype(np.int32)
    return tf.constant(ids), tf.constant(batch.lengths.astype(np.int32))


def make_decoder(setting: Setting) -> Decode:
    """Returns a function that decodes with `ForcedDecoder`."""
    model = make_model(setting)

    def search(ids: Any, lengths: Any) -> Any:
        memory = model.encode(ids, lengths)
        tiled = tfa.seq2seq.tile_batch([memory, lengths], setting.beam)  # the decoder needs this
        decoder = ForcedDecoder(
            model.cell,
            setting.beam,
            output_layer=ForcedLogits(model.logits, lengths),
            maximum_iterations=tf.reduce_max(lengths) + 1,
        )
        found, _, _ = decoder(
            model.target_embedding.embeddings,
            start_tokens=tf.fill(tf.shape(lengths), START),
            end_token=END,
            initial_state=model.start(*tiled),
        )
        return found.predicted_ids[:, :, 0]  # best hypotheses [sentences, steps]

    graph = _in_graph(search)
    return lambda batch: until_end(graph(*_tensors(batch)).numpy().tolist(), END, NUM_SPECIAL)


def make_trainer(setting: Setting) -> Update:
    """Returns a function that trains with TensorFlow Addons' decoder and loss and Keras's Adam.

    One matrix product computes the logits of all steps.
    """
    model = make_model(setting)
    optimizer = tf.keras.optimizers.Adam()

    def loss_of(ids: Any, lengths: Any) -> Any:
        steps = lengths + 1  # the end token included
        inputs = tf.pad(ids, [[0, 0], [1, 0]], constant_values=START)
        ends = END * tf.one_hot(lengths, tf.shape(inputs)[1], dtype=tf.int32)
        targets = tf.pad(ids, [[0, 0], [0, 1]]) + ends  # padding is 0
        decoder = tfa.seq2seq.BasicDecoder(model.cell, tfa.seq2seq.TrainingSampler())
        decoded, _, _ = decoder(
            model.target_embedding(inputs),
            initial_state=model.start(model.encode(ids, lengths), lengths),
            sequence_length=steps,
        )
        real = tf.sequence_mask(steps, dtype=tf.float32)
        return tfa.seq2seq.sequence_loss(model.logits(decoded.rnn_output), targets, real)

    def update(ids: Any, lengths: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = loss_of(ids, lengths)
        variables = tape.watched_variables()
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        return loss

    graph = _in_graph(update)
    return lambda batch: float(graph(*_tensors(batch)))


SYSTEM = System(
    "tensorflow-addons",
    {
        "tensorflow-addons": tfa.__version__,
        "tensorflow": tf.__version__,
        "keras": version("keras"),
        "numpy": np.__version__,
    },
    make_decoder,
    make_trainer,
    attentions=("bahdanau", "luong"),
)

if __name__ == "__main__":
    run(SYSTEM)
