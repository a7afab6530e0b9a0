"""Two models with recorded weights decode like the decoders of TensorFlow Addons."""

import functools
from typing import Any

import keras
import numpy as np
import pytest
from keras import ops

from seq2seq_memattn.search.beam import BeamResult, beam_search
from seq2seq_memattn.search.greedy import greedy_search
from seq2seq_memattn.search.scores import length_penalty
from seq2seq_memattn.search.step import Written, trace
from seq2seq_memattn.vocabulary import END_ID
from tests.addons.recorded import Arrays, from_guide, recorded
from tests.addons.test_wrapper import carried_cell, fed_back
from tests.inputs import mask_of, tensor
from tests.tolerances import as_array, assert_close

MODELS: dict[str, Any] = {
    "layer": ("luong", {"mixing_units": 9, "mixing_activation": "linear"}),
    "context": ("bahdanau", {"mixing_from": "output"}),
}
every_model = pytest.mark.parametrize("name", MODELS)
BEAM_WIDTH, MAX_LENGTH, PENALTY_WEIGHT, COVERAGE_WEIGHT = 4, 9, 0.6, 0.1
COMMON = recorded("decoding")
SOURCE = COMMON["source"]


class CarriedModel:
    """A recorded model with the methods that search calls; see `AlignedModel`."""

    def __init__(self, name: str) -> None:
        self.arrays = recorded("decoding", name)
        kind, options = MODELS[name]
        self.embedding = keras.layers.Embedding(*COMMON["embeddings"].shape, mask_zero=True)
        self.encoder = keras.layers.Bidirectional(
            keras.layers.LSTM(COMMON["memory"].shape[-1] // 2, return_sequences=True)
        )
        self.encoder(self.embedding(SOURCE))  # builds both
        self.embedding.set_weights([COMMON["embeddings"]])
        self.encoder.set_weights([COMMON[f"encoder.{index}"] for index in range(6)])
        inputs, memory = self.embedding(SOURCE[:, :1]), tensor(COMMON["memory"])
        has_layer = "layer_kernel" in self.arrays
        cell = fed_back(keras.layers.LSTMCell) if has_layer else keras.layers.LSTMCell
        self.cell = carried_cell(cell, kind, self.arrays, inputs, memory, **options)

    def start(self, source: Any, num_queries: int) -> tuple[Any, Any]:
        memory = self.cell.attention.prepare(self.encoder(self.embedding(source)))
        first = [
            tensor(self.arrays[name]) for name in ("state_h", "state_c") if name in self.arrays
        ]
        return memory, self.cell.initial_state(memory, num_queries, [first] if first else None)

    def step(self, tokens: Any, memory: Any, state: Any) -> tuple[Any, Any, Any]:
        outputs, scores, state = self.cell(self.embedding(tokens), memory, state)
        kernel, bias = (tensor(self.arrays[f"logits_{name}"]) for name in ("kernel", "bias"))
        return ops.matmul(outputs, kernel) + bias, scores, state

    def alignment(self, scores: Any, memory: Any) -> Any:
        return self.cell.attention.alignment(scores, memory)

    def positions_scored(self, scores: Any, memory: Any) -> Any:
        return self.cell.attention.positions_scored(scores, memory)


carried_model = functools.cache(CarriedModel)


def search(name: str, **options: Any) -> BeamResult:
    return beam_search(
        carried_model(name), SOURCE, BEAM_WIDTH, n_best=BEAM_WIDTH, max_length=MAX_LENGTH, **options
    )


def hypotheses(ids: Any, lengths: Any) -> list[tuple[int, ...]]:
    """Each hypothesis behind its source's index in the batch; `lengths` include the end token."""
    batch, n_best, _ = ids.shape
    ids, lengths = as_array(ids), as_array(lengths)
    places = [(row, rank) for row in range(batch) for rank in range(n_best)]
    return [(place[0], *ids[place][: lengths[place]].tolist()) for place in places]


def in_both(found: BeamResult, scores: Any, expected: Arrays) -> tuple[list[float], list[float]]:
    """Our scores and theirs, of the finished hypotheses that are in both beams."""
    ours, theirs = (
        {
            hypothesis: score
            for hypothesis, score in zip(hypotheses(ids, lengths), values, strict=True)
            if hypothesis[-1] == END_ID
        }
        for ids, lengths, values in (
            (found.tokens, found.steps, as_array(scores).flatten()),
            (expected["ids"], expected["lengths"], expected["scores"].flatten()),
        )
    )
    both = sorted(set(ours) & set(theirs))
    return [ours[one] for one in both], [theirs[one] for one in both]


@every_model
def test_the_encoder_takes_the_weights_of_its_namesake(name: str) -> None:
    model, real = carried_model(name), SOURCE != 0
    assert_close(as_array(model.start(SOURCE, 1)[0].rows)[real], COMMON["memory"][real])


@every_model
def test_logits_along_targets_are_those_of_basic_decoder(name: str) -> None:
    model, lengths = carried_model(name), COMMON["target_lengths"].tolist()
    memory, state = model.start(SOURCE, 1)
    found = []
    for tokens in COMMON["target_inputs"].T:
        logits, _, state = model.step(tokens[:, None], memory, state)
        found.append(logits)
    real = mask_of(lengths, max(lengths))
    logits = as_array(ops.concatenate(found, axis=1))
    assert_close(logits[real], model.arrays["logits"][real])


@every_model
def test_greedy_search_writes_what_the_greedy_sampler_does(name: str) -> None:
    expected = recorded("decoding", name)
    found = greedy_search(carried_model(name), SOURCE, max_length=MAX_LENGTH)
    lengths = as_array(found.lengths) + as_array(found.is_finished)
    np.testing.assert_array_equal(lengths, expected["greedy_lengths"])
    real = mask_of(lengths.tolist(), MAX_LENGTH)
    np.testing.assert_array_equal(as_array(found.tokens)[real], expected["greedy_ids"][real])


@every_model
def test_beam_search_finds_the_hypotheses_of_its_decoder(name: str) -> None:
    expected = recorded("decoding", f"{name}.beam")
    found = search(name)
    assert hypotheses(found.tokens, found.steps) == hypotheses(expected["ids"], expected["lengths"])
    np.testing.assert_array_equal(as_array(found.is_finished), expected["finished"])
    assert_close(found.log_probs, expected["log_probs"])


@every_model
def test_its_length_penalty_is_that_of_addons_without_the_end_token(name: str) -> None:
    expected = recorded("decoding", f"{name}.length_beam")
    found = search(name, length_penalty_exponent=PENALTY_WEIGHT)
    theirs = found.log_probs / length_penalty(found.steps, PENALTY_WEIGHT)
    ours = found.log_probs / length_penalty(found.lengths, PENALTY_WEIGHT)
    assert_close(ours, as_array(found.normalised_log_probs))
    with_end_tokens, scores = in_both(found, theirs, expected)
    assert len(scores) >= 7
    assert_close(np.array(with_end_tokens), scores)


@every_model
def test_the_guides_coverage_penalty_is_what_addons_adds_to_scores(name: str) -> None:
    expected = recorded("decoding", f"{name}.coverage_beam")
    found = search(name, return_alignments=True)
    penalty = from_guide("coverage_penalty")(found.alignments, SOURCE != 0)
    covered, scores = in_both(found, found.log_probs + COVERAGE_WEIGHT * penalty, expected)
    assert len(scores) >= 9
    assert_close(np.array(covered), scores)


def test_the_trace_of_hypotheses_is_gather_tree() -> None:
    arrays: Arrays = recorded("functions")
    ids, parents = arrays["step_ids"], arrays["parent_ids"]
    found = as_array(trace(Written(tensor(ids[..., None], "int32"), tensor(parents, "int32"))))
    expected = arrays["gather_tree"].transpose(1, 2, 0)  # [batch, beam, time]
    before_the_end = np.cumsum(expected == END_ID, axis=-1) <= 1
    assert (expected == END_ID).any()
    np.testing.assert_array_equal(found[before_the_end], expected[before_the_end])
