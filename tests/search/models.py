"""Models to search with: tables of log-probabilities by prefix, and small random models."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import keras
import numpy as np
import numpy.typing as npt
import pytest
from keras import ops

from seq2seq_memattn.compute.precision import dtype_policy
from seq2seq_memattn.config import ModelConfig
from seq2seq_memattn.model import Seq2Seq
from seq2seq_memattn.search.beam import BeamResult
from seq2seq_memattn.vocabulary import END_ID, NUM_SPECIAL_IDS, PAD_ID, START_ID
from tests.inputs import randomise
from tests.marks import quick
from tests.tolerances import as_array, assert_close

Array = npt.NDArray[Any]

# The options of every attention that a model can have.
ATTENTIONS: dict[str, dict[str, Any]] = {
    "none": {"attention": "none"},
    "bahdanau": {"attention": "bahdanau"},
    "luong_dot": {"attention": "luong_dot", "encoder_projection_units": 7},
    "luong_general": {"attention": "luong_general"},
    "luong_concat": {"attention": "luong_concat"},
    "k_memory": {"attention": "k_memory:3"},
    "k_memory_sigmoid": {
        "attention": "k_memory:3",
        "encoder_score": "sigmoid",
        "decoder_score": "sigmoid",
        "position_encoding": "masked",
        "max_source_length": 9,
    },
    "constant": {"attention": "constant"},
    "luong_location": {"attention": "luong_location", "max_source_length": 9},
    "local_m": {"attention": "local_m", "half_window": 2},
    "local_p": {"attention": "local_p", "half_window": 1, "local_sigma": 1.0},
    "flexible": {"attention": "flexible"},
    "flexible_window": {"attention": "flexible", "threshold": 0.5},
    "linear": {"attention": "linear"},
}
SOURCE_LENGTH = 3  # of the sources of a `PrefixModel` whose coverage counts
END_BIAS = {"constant": 2.0, "local_m": 2.0}  # with less, their hypotheses never end
# A memory that grows with the source, and one that does not.
QUICK = ("bahdanau", "k_memory")
every_attention = pytest.mark.parametrize("attention", quick(ATTENTIONS, *QUICK))
one_quick_attention = pytest.mark.parametrize("attention", quick(ATTENTIONS, "k_memory"))


def small_model(
    attention: str = "k_memory", vocab_size: int = 6, seed: int = 1, **options: Any
) -> Seq2Seq:
    """A model with random weights as large as trained ones."""
    config = ModelConfig(
        **{
            "source_vocab_size": 8,
            "target_vocab_size": vocab_size,
            "embedding_dim": 5,
            "encoder_units": 4,
            "decoder_units": 7,
            "attention_units": 3,
            **ATTENTIONS[attention],
            **options,
        },
    )
    model = Seq2Seq(config)
    randomise(model, seed=seed, scale=0.7)
    bias = np.array(model.logits.bias)
    bias[END_ID] = END_BIAS.get(attention, 0.0)
    model.logits.bias.assign(bias)
    return model


def with_rounded_products(model: Seq2Seq, precision: str = "bfloat16_products") -> Seq2Seq:
    """A model with the same weights whose products round their operands."""
    rounding = Seq2Seq(model.config, dtype=dtype_policy(precision))
    rounding.set_weights(model.get_weights())
    return rounding


def quantise(model: keras.Model) -> None:
    """Quantises a model's layers that have more weights than the others."""
    kinds = (keras.layers.Dense, keras.layers.Embedding)
    model.quantize("int8", filters=lambda layer: type(layer) in kinds)


def teacher_forced(model: Seq2Seq, source: Array, targets: Sequence[Sequence[int]]) -> Array:
    """The log-probability of each target for one source: float64 [targets].

    Args:
        model: the model.
        source: int32 [source_length], without padding.
        targets: tokens of each target, with the end token if the target is finished.
    """
    longest = max(len(target) for target in targets)
    outputs = np.full([len(targets), longest], PAD_ID, np.int32)
    for row, target in zip(outputs, targets, strict=True):
        row[: len(target)] = target
    starts = np.full([len(targets), 1], START_ID, np.int32)
    inputs = {
        "source": np.repeat(source[None], len(targets), axis=0),
        "target_inputs": np.concatenate([starts, outputs[:, :-1]], axis=1),
    }
    log_probs = np.array(ops.log_softmax(model(inputs)), np.float64)
    chosen = np.take_along_axis(log_probs, outputs[:, :, None], axis=2)[:, :, 0]
    return np.where(outputs != PAD_ID, chosen, 0.0).sum(axis=1)


class PrefixState(NamedTuple):
    """The state of a `PrefixModel`: int32 [batch, queries], the row of each prefix."""

    nodes: Any


class PrefixModel:
    """A model that looks up each prefix's log-probabilities in a table, and counts its steps.

    A hash of the prefix gives the row of the table. The reference uses the same hash, so two
    prefixes that collide do so in both.

    Args:
        tables: float [batch, nodes, vocab]. Log-probabilities.
    """

    def __init__(self, tables: Array) -> None:
        self.tables = tables
        self.num_steps = 0

    def start(self, source: Any, num_queries: int) -> tuple[Any, PrefixState]:
        shape = (ops.shape(source)[0], num_queries)
        return ops.convert_to_tensor(self.tables), PrefixState(ops.zeros(shape, dtype="int32"))

    def step(self, tokens: Any, memory: Any, state: PrefixState) -> tuple[Any, Any, PrefixState]:
        self.num_steps += 1
        nodes = self._next(state.nodes, tokens)
        logits = ops.take_along_axis(memory, nodes[:, :, None], axis=1)
        return logits, logits, PrefixState(nodes)

    def alignment(self, scores: Any, memory: Any) -> Any:
        """The probabilities of the first tokens, one for each of `SOURCE_LENGTH` positions."""
        return ops.exp(scores[:, :, -SOURCE_LENGTH:])

    def positions_scored(self, scores: Any, memory: Any) -> Any:
        return ops.full(ops.shape(scores)[:2], float(SOURCE_LENGTH))

    def alignment_fn(self, sentence: int, length: int) -> Callable[[tuple[int, ...]], Array]:
        """The same for the reference, for the first `length` positions."""

        def alignment(prefix: tuple[int, ...]) -> Array:
            row = self.tables[sentence, self._node(prefix)].astype(np.float64)
            return np.exp(row[-SOURCE_LENGTH:])[:length]

        return alignment

    def log_probs_fn(self, sentence: int) -> Callable[[tuple[int, ...]], Array]:
        """The same model for the reference: a function of one sentence's prefix."""

        def log_probs(prefix: tuple[int, ...]) -> Array:
            row = self.tables[sentence, self._node(prefix)].astype(np.float64)
            row[[PAD_ID, START_ID]] = -np.inf  # search writes neither
            return row

        return log_probs

    def _node(self, prefix: tuple[int, ...]) -> int:
        node = 0
        for token in prefix:
            node = self._next(node, token)
        return node

    def _next(self, node: Any, token: Any) -> Any:
        return (31 * node + 7 * token + 1) % self.tables.shape[1]


def random_tables(
    seed: int, end_biases: Sequence[float] | Array, nodes: int = 499, vocab_size: int = 7
) -> Array:
    """Random log-probabilities: float32 [batch, nodes, vocab].

    Args:
        seed: seed of the random numbers.
        end_biases: float [batch]. Added to the energy of the end token in each sentence.
        nodes: number of rows for prefixes.
        vocab_size: number of tokens.
    """
    shape = [len(end_biases), nodes, vocab_size]
    energies = 2.0 * np.random.default_rng(seed).normal(size=shape)
    energies[:, :, END_ID] += np.asarray(end_biases)[:, None]
    log_probs = energies - np.log(np.exp(energies).sum(axis=-1, keepdims=True))
    return log_probs.astype(np.float32)


def scripted(script: dict[tuple[int, ...], dict[int, float]], vocab_size: int) -> PrefixModel:
    """A model of one sentence with given probabilities by prefix; other tokens have probability 0.

    After prefixes outside the script, which only hypotheses of probability 0 reach, all tokens have
    the same probability.
    """
    model = PrefixModel(np.full([1, 997, vocab_size], -np.log(vocab_size), np.float32))
    nodes = []
    for prefix, probabilities in script.items():
        node = 0
        for token in (START_ID, *prefix):
            node = model._next(node, token)
        nodes.append(node)
        model.tables[0, node] = -np.inf
        for token, probability in probabilities.items():
            model.tables[0, node, token] = np.log(probability)
    assert len(set(nodes)) == len(nodes), "two prefixes of the script collide"
    return model


def sources_of(*lengths: int, seed: int = 3) -> list[npt.NDArray[np.int32]]:
    """Random sources without the end token."""
    generator = np.random.default_rng(seed)
    return [generator.integers(NUM_SPECIAL_IDS, 8, size=n).astype(np.int32) for n in lengths]


def padded(sources: Sequence[Array], extra: int = 0) -> npt.NDArray[np.int32]:
    """A batch of sources with their end tokens and `extra` columns of padding."""
    width = max(len(source) for source in sources) + 1 + extra
    batch = np.full([len(sources), width], PAD_ID, np.int32)
    for row, source in zip(batch, sources, strict=True):
        row[: len(source)] = source
        row[len(source)] = END_ID
    return batch


def assert_same_search(ours: BeamResult, theirs: BeamResult) -> None:
    """Asserts that two searches found the same, for any kind of arrays."""
    for name in ("tokens", "lengths", "is_finished"):
        np.testing.assert_array_equal(
            as_array(getattr(ours, name)), as_array(getattr(theirs, name))
        )
    for name in ("log_probs", "normalised_log_probs"):
        assert_close(as_array(getattr(ours, name)), as_array(getattr(theirs, name)))
