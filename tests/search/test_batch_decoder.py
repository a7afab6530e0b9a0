from typing import Any

import numpy as np
import pytest

from seq2seq_memattn.search.batch_decoder import BatchDecoder, Hypothesis, sorted_batches
from seq2seq_memattn.search.beam import beam_search
from seq2seq_memattn.search.compiled_search import CompiledSearch
from seq2seq_memattn.search.ensemble import Ensemble
from seq2seq_memattn.search.options import Lengths, Sampling, SearchOptions, samples
from seq2seq_memattn.search.sample import sample
from seq2seq_memattn.search.scores import length_penalty
from seq2seq_memattn.vocabulary import END_ID, PAD_ID
from tests.search import own_parts
from tests.search.models import padded, small_model, sources_of, with_rounded_products
from tests.tolerances import as_array, assert_close

LENGTHS = (3, 0, 8, 3, 5, 1, 8, 2, 6, 4, 0)
SOURCES = sources_of(*LENGTHS)


def assert_same(ours: list[list[Hypothesis]], theirs: list[list[Hypothesis]]) -> None:
    for left, right in zip(ours, theirs, strict=True):
        for one, other in zip(left, right, strict=True):
            assert one.tokens.tolist() == other.tokens.tolist()
            assert_close(np.array(one[1:3]), np.array(other[1:3]))


def test_batches_are_sorted_by_falling_length_and_remember_their_places() -> None:
    batches = list(sorted_batches(SOURCES, 4))
    assert [len(indices) for indices, _ in batches] == [4, 4, 3]
    order = np.concatenate([indices for indices, _ in batches])
    assert sorted(order.tolist()) == list(range(len(SOURCES)))
    assert [LENGTHS[i] for i in order] == sorted(LENGTHS, reverse=True)
    for indices, batch in batches:
        assert batch.shape == (len(indices), LENGTHS[indices[0]] + 1)
        for index, row in zip(indices, batch, strict=True):
            length = LENGTHS[index]
            assert row[:length].tolist() == SOURCES[index].tolist()
            assert row[length] == END_ID
            assert (row[length + 1 :] == PAD_ID).all()


@pytest.mark.slow
def test_results_do_not_depend_on_the_batch_size_nor_on_the_order() -> None:
    decoder = BatchDecoder(small_model(), SearchOptions(3, 2), Lengths(6))
    together = decoder(SOURCES, batch_size=len(SOURCES))
    assert_same(decoder(SOURCES, batch_size=4), together)
    assert_same(decoder(SOURCES, batch_size=1), together)
    assert_same(decoder(SOURCES[::-1], batch_size=4)[::-1], together)


def test_hypotheses_are_those_of_beam_search() -> None:
    model = small_model("bahdanau")
    found = BatchDecoder(model, SearchOptions(4, 3, 0.6), Lengths(6), True)(SOURCES, 4)
    expected = beam_search(model, padded(SOURCES), 4, 3, 0.6, 6, return_alignments=True)
    assert [len(hypotheses) for hypotheses in found] == [3] * len(SOURCES)
    for row, hypotheses in enumerate(found):
        for rank, hypothesis in enumerate(hypotheses):
            length = int(expected.lengths[row, rank])
            assert (
                hypothesis.tokens.tolist() == expected.tokens[row, rank, :length].numpy().tolist()
            )
            assert END_ID not in hypothesis.tokens
            assert_close(np.array(hypothesis.log_prob), as_array(expected.log_probs)[row, rank])
            penalty = as_array(length_penalty(np.array(length), 0.6))
            assert_close(
                np.array(hypothesis.normalised_log_prob), np.array(hypothesis.log_prob / penalty)
            )
            steps = length + int(expected.is_finished[row, rank])
            assert hypothesis.alignment.shape == (steps, LENGTHS[row] + 1)
            assert_close(hypothesis.alignment.sum(axis=-1), np.ones(steps))
            alignment = as_array(expected.alignments)[row, rank, :steps, : LENGTHS[row] + 1]
            assert_close(hypothesis.alignment, alignment)
            scores = as_array(expected.scores)[row, rank, :steps, : LENGTHS[row] + 1]
            assert_close(hypothesis.scores[:, : LENGTHS[row] + 1], scores)


def test_alignments_come_on_request_alone() -> None:
    ((hypothesis,),) = BatchDecoder(small_model(), SearchOptions(2), Lengths(3))(SOURCES[:1], 1)
    assert hypothesis.alignment is None and hypothesis.scores is None


@pytest.mark.slow
def test_weights_are_read_at_each_call() -> None:
    model = small_model()
    decoder = BatchDecoder(model, SearchOptions(2), Lengths(4))
    before = decoder(SOURCES, 11)
    for variable in model.trainable_variables:
        variable.assign(0.5 * as_array(variable).astype(np.float32))
    after = decoder(SOURCES, 11)
    assert_same(after, BatchDecoder(model, SearchOptions(2), Lengths(4))(SOURCES, 11))
    assert before[0][0].log_prob != after[0][0].log_prob


@pytest.mark.parametrize("is_frozen", [False, True])
def test_weights_that_stay_as_they_are_are_read_once(
    is_frozen: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[CompiledSearch] = []
    monkeypatch.setattr(CompiledSearch, "update_weights", lambda search: read.append(search))
    decoder = BatchDecoder(small_model(), SearchOptions(2), Lengths(3), is_frozen=is_frozen)
    for _ in range(3):
        decoder._search(4, 11)
    assert len(read) == (1 if is_frozen else 3)


@pytest.mark.parametrize(
    ("precision", "attention", "batch_size", "has_kernel", "expected"),
    [
        ("float32", "k_memory", 4, True, True),
        ("int8_products", "k_memory", 4, True, False),
        ("int8_products", "k_memory", 4, False, True),
        ("int8_products", "k_memory", 1, True, True),
        ("int8_products", "bahdanau", 4, True, True),
    ],
)
def test_many_sources_are_compiled_by_xla_unless_the_plain_graph_is_faster(
    precision: str,
    attention: str,
    batch_size: int,
    has_kernel: bool,
    expected: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    module = "seq2seq_memattn.search.batch_decoder"
    monkeypatch.setattr(f"{module}.has_int8_kernel", lambda: has_kernel)
    monkeypatch.setattr(f"{module}.MANY", len(SOURCES))
    compiled = []

    def plain_search(model: Any, options: Any, size: int, aligns: bool, jit: bool, *_: Any) -> Any:
        compiled.append(jit)
        return CompiledSearch(model, options, size, aligns)

    monkeypatch.setattr(f"{module}.CompiledSearch", plain_search)
    model = with_rounded_products(small_model(attention), precision)
    BatchDecoder(model, lengths=Lengths(2))(SOURCES, batch_size)
    assert compiled == [expected]


@pytest.mark.slow
def test_a_source_alone_is_decoded_as_in_a_batch() -> None:
    decoder = BatchDecoder(small_model(), SearchOptions(3, 2), return_alignments=True)
    together = decoder(SOURCES, 4)
    for index in (0, 3):
        assert_same(decoder(SOURCES[index : index + 1], 4), together[index : index + 1])


def test_a_place_without_a_hypothesis_is_empty() -> None:
    model = small_model(vocab_size=9)
    banned = tuple(range(4, model.vocab_size))
    options, lengths = SearchOptions(5, 5, banned=banned), Lengths(max_length=2)
    (found,) = BatchDecoder(model, options, lengths, return_alignments=True)(SOURCES[:1], 1)
    real = [one.tokens.tolist() for one in found if one.log_prob > -1e20]
    assert sorted(real) == [[], [3], [3, 3]]  # the last one was cut
    assert [one.tokens.tolist() for one in found[3:]] == [[], []]
    steps = [len(one.alignment) for one in found if one.alignment is not None]
    assert sorted(steps[:3]) == [1, 2, 2] and steps[3:] == [0, 0]


@pytest.mark.slow
def test_progress_is_told_and_no_sources_give_no_results() -> None:
    done: list[int] = []
    decoder = BatchDecoder(small_model(), SearchOptions(2), Lengths(3))
    decoder(SOURCES, 4, done.append)
    assert done == [4, 4, 3]
    assert decoder([], 4, done.append) == []


@pytest.mark.parametrize("several", [False, True])
def test_other_models_whose_sources_may_end_otherwise_are_refused(several: bool) -> None:
    searchable = own_parts.make().searchable()
    model = Ensemble([searchable, searchable]) if several else searchable
    with pytest.raises(ValueError, match="`model`: expected a Seq2Seq or .*; got a Searchable"):
        BatchDecoder(model)


@pytest.mark.parametrize("batch_size", [0, -1])
def test_a_batch_size_that_is_not_positive_is_refused(batch_size: int) -> None:
    decoder = BatchDecoder(small_model(), SearchOptions(2), Lengths(3))
    with pytest.raises(ValueError, match=f"`batch_size` must be positive; got {batch_size}"):
        decoder(SOURCES, batch_size)


@pytest.mark.parametrize("name", ["prefixes", "seeds"])
def test_another_number_of_prefixes_or_seeds_is_refused(name: str) -> None:
    decoder = BatchDecoder(small_model(), SearchOptions(2), Lengths(3))
    with pytest.raises(ValueError, match=f"`{name}`: expected one for each of 11 sources; got 2"):
        decoder(SOURCES, 4, **{name: np.zeros([2, 2], np.uint32)})  # type: ignore[arg-type]


@pytest.mark.slow
def test_samples_of_a_source_follow_its_seed_in_any_batch() -> None:
    decoder = BatchDecoder(small_model(), samples(3, Sampling()), Lengths(6))
    seeds = np.array([[8, row] for row in range(len(SOURCES))], np.uint32)
    together = decoder(SOURCES, batch_size=len(SOURCES), seeds=seeds)
    assert_same(decoder(SOURCES, batch_size=4, seeds=seeds), together)
    assert_same(decoder(SOURCES[::-1], batch_size=4, seeds=seeds[::-1])[::-1], together)
    assert_same(decoder(SOURCES[3:4], batch_size=4, seeds=seeds[3:4]), together[3:4])
    expected = sample(small_model(), padded(SOURCES), 3, seed=8, max_length=6)
    for row, drawn in enumerate(together):
        for rank, hypothesis in enumerate(drawn):
            tokens = as_array(expected.tokens)[row, rank, : len(hypothesis.tokens)]
            assert hypothesis.tokens.tolist() == tokens.tolist()
            assert_close(np.array(hypothesis.log_prob), as_array(expected.log_probs)[row, rank])
