import numpy as np
import pytest

from seq2seq_memattn.runs import pair_scorer
from seq2seq_memattn.runs.pair_scorer import PairScorer
from seq2seq_memattn.search.batch_decoder import BatchDecoder
from seq2seq_memattn.search.options import SearchOptions
from seq2seq_memattn.vocabulary import END_ID
from tests.marks import slow
from tests.search.models import one_quick_attention, small_model, sources_of, teacher_forced

SOURCES = sources_of(6, 0, 3, 5, 1)
TARGETS = sources_of(2, 4, 0, 4, 3, seed=4)


def targets() -> list[np.ndarray]:
    """The targets with ids of a vocabulary of 6."""
    return [np.minimum(target, 5) for target in TARGETS]


@one_quick_attention
def test_scores_are_sums_of_log_probabilities_with_the_end_token(attention: str) -> None:
    model = small_model(attention)
    expected = [
        teacher_forced(model, np.append(source, END_ID), [[*target, END_ID]])[0]
        for source, target in zip(SOURCES, targets(), strict=True)
    ]
    found = PairScorer(model)(SOURCES, targets(), batch_size=2)
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize("options", [{}, *slow({"tied_embeddings": "target", "mixing_units": 5})])
def test_scores_are_those_that_search_gives_its_hypotheses(options: dict[str, object]) -> None:
    model = small_model("bahdanau", **options)
    model.logits.bias.assign([-50.0, -50.0, 2.0, 0.0, 0.0, 0.0])  # makes hypotheses end
    found = BatchDecoder(model, SearchOptions(4, 3))(SOURCES, batch_size=5)
    pairs = [
        (source, hypothesis)
        for source, hypotheses in zip(SOURCES, found, strict=True)
        for hypothesis in hypotheses
        if len(hypothesis.tokens) < 2 * (len(source) + 1) + 10  # not cut at the limit
    ]
    assert len(pairs) >= 10
    log_probs = PairScorer(model)(
        [source for source, _ in pairs], [one.tokens for _, one in pairs], batch_size=4
    )
    expected = [one.log_prob for _, one in pairs]
    assert len({len(one.tokens) for _, one in pairs}) > 1
    np.testing.assert_allclose(log_probs, expected, rtol=1e-5)


def test_neither_order_nor_batches_change_a_score() -> None:
    model = small_model()
    scorer, done = PairScorer(model), []
    together = scorer(SOURCES, targets(), 5, done.append)
    alone = scorer(SOURCES, targets(), 1, done.append)
    turned = scorer(SOURCES[::-1], targets()[::-1], 2, done.append)
    assert done == [5, 1, 1, 1, 1, 1, 2, 2, 1]
    assert len(set(np.round(together, 3))) == 5
    np.testing.assert_allclose(alone, together, rtol=1e-5)
    np.testing.assert_allclose(turned[::-1], together, rtol=1e-5)


@pytest.mark.parametrize(
    "options", slow({}, {"position_encoding": "masked", "max_source_length": 7})
)
def test_few_widths_where_each_is_compiled_change_no_score(
    options: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = small_model("k_memory", **options)
    expected = PairScorer(model)(SOURCES, targets(), batch_size=2)
    monkeypatch.setattr(pair_scorer, "has_static_shapes", lambda: True)
    np.testing.assert_allclose(PairScorer(model)(SOURCES, targets(), 2), expected, rtol=1e-5)


def test_weights_are_read_at_each_call() -> None:
    model = small_model()
    scorer = PairScorer(model)
    scorer(SOURCES, targets(), 5)
    for variable in model.trainable_variables:
        variable.assign(np.zeros(variable.shape))
    expected = [-(len(target) + 1) * np.log(6.0) for target in TARGETS]
    np.testing.assert_allclose(scorer(SOURCES, targets(), 5), expected, rtol=1e-6)


def test_no_pairs_have_no_scores() -> None:
    assert PairScorer(small_model())([], [], 3).shape == (0,)


def test_what_cannot_be_scored_is_refused() -> None:
    scorer = PairScorer(small_model())
    with pytest.raises(ValueError, match="expected as many targets as sources, 5; got 4"):
        scorer(SOURCES, targets()[1:], 2)
    with pytest.raises(ValueError, match="`batch_size` must be positive; got 0"):
        scorer(SOURCES, targets(), 0)


@pytest.mark.slow
def test_long_targets_are_scored_fewer_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    model, done = small_model(), []
    together = PairScorer(model)(SOURCES, targets(), 5)
    monkeypatch.setattr(pair_scorer, "MAX_LOGITS", 10 * model.config.target_vocab_size)
    few = PairScorer(model)(SOURCES, targets(), 5, done.append)
    assert done == [2, 2, 1]  # lengths 5, 5, 4, 3, 1 with the end token; at most 10 per batch
    np.testing.assert_allclose(few, together, rtol=1e-5)
    monkeypatch.setattr(pair_scorer, "MAX_LOGITS", 1)
    alone = PairScorer(model)(SOURCES, targets(), 5, done.append)
    assert done[3:] == [1] * 5
    np.testing.assert_allclose(alone, together, rtol=1e-5)
