"""Search on JAX, without TensorFlow in the process, finds what search on TensorFlow finds."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seq2seq_memattn.model import Seq2Seq
from seq2seq_memattn.search.batch_decoder import BatchDecoder
from seq2seq_memattn.search.beam import beam_search
from seq2seq_memattn.search.ensemble import Ensemble
from seq2seq_memattn.search.greedy import greedy_search
from seq2seq_memattn.search.options import SearchOptions
from seq2seq_memattn.search.sample import sample
from tests.marks import slow
from tests.running import run_python
from tests.search.models import padded, small_model, sources_of, with_rounded_products
from tests.tolerances import as_array, assert_close

SOURCES = sources_of(6, 0, 3)

# Rules, all in one search with an ensemble, and each in a search of its own.
RULES: dict[str, Any] = {
    "min_length": 2,
    "length_reward": 0.2,
    "coverage_penalty": 0.3,
    "no_repeat_ngram": 2,
    "banned": [5],
    "prefix": [[4, 3], [0, 0], [3, 0]],
}
SCRIPT = """
import os
import sys

sys.modules["tensorflow"] = None  # importing it fails from here on
os.environ["KERAS_BACKEND"] = "jax"

import json

import jax
import numpy as np

from seq2seq_memattn.compute.precision import dtype_policy
from seq2seq_memattn.config import ModelConfig
from seq2seq_memattn.model import Seq2Seq
from seq2seq_memattn.search.batch_decoder import BatchDecoder
from seq2seq_memattn.search.beam import beam_search
from seq2seq_memattn.search.ensemble import Ensemble
from seq2seq_memattn.search.greedy import greedy_search
from seq2seq_memattn.search.options import Lengths, Sampling, SearchOptions, samples
from seq2seq_memattn.search.sample import sample

folder, *searches = sys.argv[1:]
with open(f"{folder}/config.json") as stream:
    model = Seq2Seq(ModelConfig.from_dict(json.load(stream)))
given = np.load(f"{folder}/weights.npz")
model.set_weights([given[str(i)] for i in range(len(model.weights))])
source = np.load(f"{folder}/source.npy")


def beam(source):
    return beam_search(model, source, 4, 3, 0.6, 5, return_alignments=True)


def greedy(source):
    return greedy_search(model, source, 5)


def sampled(source):
    return sample(model, source, 3, 1.5, 6, 0.8, seed=7, max_length=8)


def unlimited(source):
    return beam_search(model, source, 2)


def eight(source):
    rounding = Seq2Seq(model.config, dtype=dtype_policy("int8_products"))
    rounding.set_weights(model.get_weights())
    return beam_search(rounding, source, 4, 3, 0.6, 5)


def together(source):
    other = Seq2Seq(model.config)
    other.set_weights([0.6 * weight for weight in model.get_weights()])
    return beam_search(Ensemble([model, other]), source, 4, 3, 0.6, 6, **RULES)


def under_one(rule):
    return lambda source: beam_search(model, source, 4, 3, 0.6, 6, **{rule: RULES[rule]})


with open(f"{folder}/rules.json") as stream:
    RULES = json.load(stream)
globals().update({rule: under_one(rule) for rule in RULES})

try:
    jax.jit(lambda source: beam_search(model, source, 2, max_length=source[:, 0]))(source)
    raise AssertionError("a limit of each sentence was taken")
except ValueError as error:
    assert "Under jax.jit or XLA `max_length` must be an int" in str(error)
captured, known = jax.numpy.asarray(source), jax.numpy.array([2, 5, 3])
cut = jax.jit(lambda source: beam_search(model, source, 2, max_length=known))(captured)
assert cut.tokens.shape[2] == 5, cut.tokens.shape
assert (cut.lengths <= known[:, None]).all(), cut.lengths
try:
    jax.jit(lambda: beam_search(model, captured, 2, jit_compile=True))()
    raise AssertionError("XLA compiled inside of a compiled function")
except ValueError as error:
    assert "expected a call outside graphs" in str(error)
try:
    jax.jit(lambda source: sample(model, source))(source)
    raise AssertionError("a number was drawn outside of the function")
except ValueError as error:
    assert "random" in str(error)
for name in searches:
    how, _, what = name.partition(" ")
    search = globals()[what]
    result = (jax.jit(search) if how == "compiled" else search)(source)
    arrays = {k: np.asarray(v) for k, v in result._asdict().items() if k != "memory"}
    np.savez(f"{folder}/{name}.npz", **arrays)
if "eager unlimited" in searches:
    found = BatchDecoder(model, SearchOptions(2))([row[row > 2] for row in source], batch_size=2)
    with open(f"{folder}/decoded.json", "w") as stream:
        json.dump([[h[0].tokens.tolist(), h[0].log_prob] for h in found], stream)
    decoder = BatchDecoder(model, samples(3, Sampling(1.5, 6, 0.8)), Lengths(8))
    seeds = np.array([[7, i] for i in range(len(source))], np.uint32)
    drawn = decoder([row[row > 2] for row in source], batch_size=2, seeds=seeds)
    expected = sampled(source)
    for row, samples in enumerate(drawn):
        for rank, one in enumerate(samples):
            tokens = np.asarray(expected.tokens)[row, rank, : len(one.tokens)]
            assert one.tokens.tolist() == tokens.tolist()
"""


LIMITS = """
import os

os.environ["KERAS_BACKEND"] = "jax"
import jax
import numpy as np
from seq2seq_memattn import ModelConfig, Seq2Seq, beam_search, sample

model = Seq2Seq(ModelConfig(source_vocab_size=9, target_vocab_size=9, decoder_units=8))
source = np.array([[5, 3, 2], [4, 2, 0]])
for limits in ([2, 4], [4, 1]):
    found = beam_search(model, source, 2, max_length=np.array(limits))
    assert found.tokens.shape[2] == 4
    assert (np.asarray(found.steps) <= np.array(limits)[:, None]).all()
(graph,) = [graph for key, graph in vars(model)["_searches"].items()]
beam_search(model, source, 2, max_length=np.array([3, 1]))
assert len(vars(model)["_searches"]) == 2
jax.config.update("jax_enable_x64", True)
for top_p in (0.8, 1.0):
    sample(model, source, 2, top_p=top_p, seed=7, max_length=4)
"""


def test_limits_of_each_source_are_compiled_for_the_largest_and_samples_take_wide_ints() -> None:
    process = run_python("-c", LIMITS)
    assert process.returncode == 0, process.stderr.decode()


def search_on_jax(folder: Path, attention: str, searches: list[str]) -> None:
    """Runs searches on JAX with the weights of a model; writes each result into a file."""
    model = small_model(attention)
    weights: dict[str, Any] = {
        str(i): np.array(value) for i, value in enumerate(model.get_weights())
    }
    np.savez(folder / "weights.npz", **weights)
    np.save(folder / "source.npy", padded(SOURCES))
    (folder / "config.json").write_text(json.dumps(model.config.to_dict()))
    (folder / "rules.json").write_text(json.dumps(RULES))
    process = run_python("-c", SCRIPT, str(folder), *searches)
    assert process.returncode == 0, process.stderr.decode()


def assert_same(path: Path, theirs: Any, atol: float = 0.0) -> None:
    """Compares the arrays of a file with the fields of a result.

    Args:
        atol: float. The allowed difference; 0.0 allows only float32's rounding.
    """
    compared = 0
    with np.load(path) as ours:
        for name in ours.files:
            expected = getattr(theirs, name)
            if isinstance(expected, tuple):  # not requested
                continue
            if atol and as_array(expected).dtype.kind == "f":
                np.testing.assert_allclose(ours[name], as_array(expected), rtol=0.0, atol=atol)
            elif as_array(expected).dtype.kind == "f":
                assert_close(ours[name], as_array(expected))
            else:
                np.testing.assert_array_equal(ours[name], as_array(expected))
            compared += 1
    assert compared >= 4


@pytest.mark.parametrize("kind", ["beam", *slow("sampled", "greedy", "eight")])
def test_compiled_search_equals_that_of_tensorflow(tmp_path: Path, kind: str) -> None:
    model, source = small_model("k_memory_sigmoid"), padded(SOURCES)
    search_on_jax(tmp_path, "k_memory_sigmoid", [f"compiled {kind}"])
    expected = {
        "beam": lambda: beam_search(model, source, 4, 3, 0.6, 5, return_alignments=True),
        "greedy": lambda: greedy_search(model, source, 5),
        "eight": lambda: beam_search(
            with_rounded_products(model, "int8_products"), source, 4, 3, 0.6, 5
        ),
        "sampled": lambda: sample(model, source, 3, 1.5, 6, 0.8, seed=7, max_length=8),
    }[kind]()
    # A last bit may round a value to the next of the 255 steps, so that a product differs.
    assert_same(tmp_path / f"compiled {kind}.npz", expected, 0.02 if kind == "eight" else 0.0)


@pytest.mark.slow
def test_an_ensemble_under_constraints_finds_what_it_finds_on_tensorflow(tmp_path: Path) -> None:
    model, source = small_model("k_memory"), padded(SOURCES)
    other = Seq2Seq(model.config)
    other.set_weights([0.6 * weight for weight in model.get_weights()])
    search_on_jax(tmp_path, "k_memory", ["compiled together", "eager together"])
    expected = beam_search(Ensemble([model, other]), source, 4, 3, 0.6, 6, **RULES)
    assert_same(tmp_path / "compiled together.npz", expected)
    assert_same(tmp_path / "eager together.npz", expected)


@pytest.mark.slow
def test_each_rule_alone_finds_what_it_finds_on_tensorflow(tmp_path: Path) -> None:
    model, source = small_model("k_memory"), padded(SOURCES)
    search_on_jax(tmp_path, "k_memory", [f"compiled {rule}" for rule in RULES])
    free = beam_search(model, source, 4, 3, 0.6, 6)
    for rule, value in RULES.items():
        expected = beam_search(model, source, 4, 3, 0.6, 6, **{rule: value})
        assert_same(tmp_path / f"compiled {rule}.npz", expected)
        assert not np.array_equal(
            as_array(expected.normalised_log_probs), as_array(free.normalised_log_probs)
        ), rule


@pytest.mark.slow
@pytest.mark.parametrize("attention", ["bahdanau", "none", "luong_general", "flexible_window"])
def test_search_with_every_attention_equals_that_of_tensorflow(
    tmp_path: Path, attention: str
) -> None:
    model, source = small_model(attention), padded(SOURCES)
    searches = ["compiled beam", "eager beam", "eager unlimited", "eager greedy"]
    search_on_jax(tmp_path, attention, searches)
    expected = beam_search(model, source, 4, 3, 0.6, 5, return_alignments=True)
    assert_same(tmp_path / "compiled beam.npz", expected)
    assert_same(tmp_path / "eager beam.npz", expected)
    assert_same(tmp_path / "eager unlimited.npz", beam_search(model, source, 2))
    assert_same(tmp_path / "eager greedy.npz", greedy_search(model, source, 5))
    decoded = json.loads((tmp_path / "decoded.json").read_text())
    for (tokens, log_prob), (best,) in zip(
        decoded, BatchDecoder(model, SearchOptions(2))(SOURCES, 2), strict=True
    ):
        assert tokens == best.tokens.tolist()
        assert_close(np.array(log_prob), np.array(best.log_prob))
