import dataclasses
import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from seq2seq_memattn.runs.directory import Run
from seq2seq_memattn.runs.ensemble import ensemble_of
from seq2seq_memattn.runs.pair_scorer import PairScorer
from seq2seq_memattn.runs.translator import Translator
from seq2seq_memattn.search.sample import sample
from seq2seq_memattn.search.top_successors import is_dead
from seq2seq_memattn.serving.export.graph import ServingGraph, text_model_of
from seq2seq_memattn.serving.export.options import ExportOptions
from seq2seq_memattn.text.form import TextForm
from seq2seq_memattn.vocabulary import END_ID, SymbolVocabulary
from tests.compute.test_precision import rounded_products
from tests.errors import refused
from tests.marks import slow
from tests.search.models import one_quick_attention, small_model, with_rounded_products

SOURCES, TARGETS = SymbolVocabulary("vwxyz"), SymbolVocabulary("abc")
TEXTS = ["x y x", "", "v w x y z z y", "z", "   "]
OPTIONS = ExportOptions(4, 3, num_samples=3, temperature=1.5, top_k=5, top_p=0.9, prefix=True)

Function = Callable[..., dict[str, Any]]


def graph_of(run: Any, options: ExportOptions) -> ServingGraph:
    return ServingGraph(text_model_of(run, options), options)


def run_of(attention: str, **options: Any) -> Run:
    """An untrained run whose hypotheses end at different lengths."""
    model = small_model(attention, **options)
    model.logits.bias.assign([-50.0, -50.0, 2.0, 0.0, 0.0, 0.0])
    return Run(Path("run"), model, SOURCES, TARGETS, 1, {"update": 1}, TextForm(), [])


@functools.cache
def answers(attention: str, signature: str) -> Function:
    """A signature of a run of `run_of`; cached, because tracing takes seconds."""
    return graph_of(run_of(attention), OPTIONS).function(signature)


def call(function: Function, *texts: list[str], **more: Any) -> dict[str, Any]:
    outputs = function(*(tf.constant(each, tf.string) for each in texts), **more)
    return {name: output.numpy() for name, output in outputs.items()}


@one_quick_attention
def test_translations_are_those_of_files(attention: str) -> None:
    run = run_of(attention)
    found = call(answers(attention, "serving_default"), TEXTS)
    expected = Translator(run, OPTIONS.search(run.model))(TEXTS, batch_size=9)
    for row, translations in enumerate(expected):
        for rank, (text, hypothesis) in enumerate(translations):
            assert found["translations"][row, rank].decode() == text
            log_prob = hypothesis.log_prob if hypothesis else 0.0
            np.testing.assert_allclose(found["log_probs"][row, rank], log_prob, rtol=1e-5)
    assert found["num_tokens"][1].tolist() == [0, 0, 0]
    assert not found["source_is_cut"].any()


@one_quick_attention
def test_translations_begin_with_the_given_prefixes(attention: str) -> None:
    run, prefixes = run_of(attention), ["b a", "a", "", "c c", "a b"]
    found = call(answers(attention, "complete"), TEXTS, prefixes)
    translate = Translator(run, OPTIONS.search(run.model))
    expected = translate(TEXTS, batch_size=9, prefixes=prefixes)
    for row, (translations, prefix) in enumerate(zip(expected, prefixes, strict=True)):
        for rank, (text, hypothesis) in enumerate(translations):
            assert found["translations"][row, rank].decode() == text
            log_prob = hypothesis.log_prob if hypothesis else 0.0
            np.testing.assert_allclose(found["log_probs"][row, rank], log_prob, rtol=1e-5)
            assert text.startswith(prefix) or not TEXTS[row].strip()


def test_a_prefix_beyond_the_limit_is_cut_and_that_is_said() -> None:
    options = dataclasses.replace(OPTIONS, max_source_length=4)
    complete = graph_of(run_of("k_memory"), options).function("complete")
    found = call(complete, ["x", "x"], ["a b c a", "a b c a b"])
    assert found["prefix_is_cut"].tolist() == [False, True]
    assert found["translations"][0].tolist() == found["translations"][1].tolist()


def test_an_ensemble_answers_with_rules_of_search_as_files_are_translated() -> None:
    runs = [run_of("k_memory"), run_of("bahdanau", seed=2)]
    run = ensemble_of(runs)
    options = ExportOptions(
        4, 2, length_reward=0.3, coverage_penalty=0.5, min_length_ratio=0.5, banned=(4,)
    )
    graph = graph_of(run, options)
    translate = Translator(run, options.search(run.model), options.lengths, return_alignments=True)
    expected = translate(TEXTS, batch_size=9)
    found = call(graph.function("align"), TEXTS)
    scores = call(graph.function("score"), TEXTS[2:4], [best[0].text for best in expected[2:4]])
    for row, translations in enumerate(expected):
        texts = [text.decode() for text in found["translations"][row]]
        assert texts == [text for text, _ in translations]
        if translations[0].hypothesis is not None:
            alignment = translations[0].hypothesis.alignment
            ours = found["alignments"][row, : len(alignment), : alignment.shape[1]]
            np.testing.assert_allclose(ours, alignment, atol=1e-5)
    assert "alpha" not in found and "b" not in b" ".join(found["translations"].ravel()).decode()
    np.testing.assert_allclose(scores["log_probs"], found["log_probs"][2:4, 0], rtol=1e-4)


@one_quick_attention
def test_the_best_translation_comes_with_its_alignment(attention: str) -> None:
    run = run_of(attention)
    found = call(answers(attention, "align"), TEXTS)
    translate = Translator(run, OPTIONS.search(run.model), return_alignments=True)
    for row, translations in enumerate(translate(TEXTS, batch_size=9)):
        text, hypothesis = translations[0]
        if hypothesis is None:
            assert not found["alignments"][row].any()
            assert not b"".join(found["target_pieces"][row])
            continue
        target_length, source_length = hypothesis.alignment.shape
        alignment = found["alignments"][row]
        np.testing.assert_allclose(
            alignment[:target_length, :source_length], hypothesis.alignment, atol=1e-5
        )
        assert not alignment[target_length:].any() and not alignment[:, source_length:].any()
        pieces = [piece.decode() for piece in found["source_pieces"][row]]
        padding = [""] * (len(pieces) - source_length)
        assert pieces == [*TEXTS[row].split(), "</s>", *padding]
        target = [piece.decode() for piece in found["target_pieces"][row][:target_length]]
        assert [piece for piece in target if piece != "</s>"] == text.split()
        assert found["num_tokens"][row, 0] == target_length


def test_a_translation_and_its_alignment_share_one_encoding(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = run_of("k_memory", encoder_layers=1, bidirectional=False, decoder_layers=1)
    encode, encoded = run.model.encode, []

    def counted(source: Any, training: bool = False) -> Any:
        encoded.append(source)
        return encode(source, training)

    monkeypatch.setattr(run.model, "encode", counted)
    graph_of(run, OPTIONS).function("align")
    assert len(encoded) == 1


def test_the_slots_of_k_memory_make_up_its_alignment() -> None:
    found = call(answers("k_memory", "align"), TEXTS)
    together = np.einsum("btk,bsk->bts", found["beta"], found["alpha"])
    np.testing.assert_allclose(found["alignments"], together, atol=1e-6)
    assert found["beta"].shape[2] == 3


def test_given_translations_are_scored() -> None:
    sources, targets = ["x y x", "", "z"], ["a b", "c", ""]
    found = call(answers("k_memory", "score"), sources, targets)
    pairs = [
        [np.asarray(vocabulary.encode(text), np.int32) for text in texts]
        for vocabulary, texts in ((SOURCES, sources), (TARGETS, targets))
    ]
    expected = PairScorer(run_of("k_memory").model)(*pairs, batch_size=3)
    np.testing.assert_allclose(found["log_probs"], expected, rtol=1e-5)
    assert found["num_tokens"].tolist() == [3, 2, 1]


def test_translations_of_many_logits_are_scored_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    sources, targets = ["x y x", "", "z", "y", "x"], ["a b", "c", "", "a a a", "b"]
    expected = call(answers("k_memory", "score"), sources, targets)
    monkeypatch.setattr("seq2seq_memattn.serving.export.graph.MAX_LOGITS", 2 * 4 * 6)
    in_parts = graph_of(run_of("k_memory"), OPTIONS).function("score")
    loops = [op for op in in_parts.graph.get_operations() if op.type == "StatelessWhile"]
    assert loops or [op for op in in_parts.graph.get_operations() if op.type == "While"]
    found = call(in_parts, sources, targets)
    np.testing.assert_allclose(found["log_probs"], expected["log_probs"], rtol=1e-5)


@pytest.mark.parametrize("signature", ["serving_default", *slow("align", "score", "sample")])
def test_rounded_operands_give_products_that_are_not_rounded(signature: str) -> None:
    run = run_of("k_memory")
    rounding = dataclasses.replace(run, model=with_rounded_products(run.model))
    assert not rounded_products(graph_of(rounding, OPTIONS).function(signature).graph)


@pytest.mark.slow
def test_samples_follow_from_a_text_and_its_seed_alone() -> None:
    run, seeds = run_of("k_memory"), [5, 1, 1, 2**31 - 1, 5]
    function = answers("k_memory", "sample")
    found = call(function, TEXTS, seed=tf.constant(seeds))
    for row, (text, seed) in enumerate(zip(TEXTS, seeds, strict=True)):
        if not text.split():
            assert not found["num_tokens"][row].any() and not found["log_probs"][row].any()
            assert set(found["translations"][row]) == {b""}
            continue
        source = np.array([[*SOURCES.encode(text), END_ID]], np.int32)
        expected = sample(run.model, source, 3, 1.5, 5, 0.9, seed=seed)
        np.testing.assert_allclose(found["log_probs"][row], expected.log_probs[0], rtol=1e-5)
        for rank, length in enumerate(expected.lengths[0]):
            tokens = expected.tokens[0, rank, :length].numpy()
            assert found["translations"][row, rank].decode() == TARGETS.decode(tokens)
            steps = int(length) + int(expected.is_finished[0, rank])
            assert found["num_tokens"][row, rank] == steps
    again = call(function, TEXTS[2:4], seed=tf.constant(seeds[2:4]))
    assert again["translations"].tolist() == found["translations"][2:4].tolist()


def test_a_seed_below_0_is_another_at_each_call() -> None:
    tf.random.set_seed(3)  # this seed must not enter an export
    function = graph_of(run_of("k_memory"), OPTIONS).function("sample")
    texts, seeds = ["v w x y z"] * 6, tf.fill([6], -1)
    first, second = (call(function, texts, seed=seeds)["translations"].tolist() for _ in range(2))
    assert first != second
    assert any(row != first[0] for row in first)
    (number,) = (op for op in function.graph.get_operations() if op.type == "RandomUniformInt")
    assert number.get_attr("seed") == number.get_attr("seed2") == 0


def test_an_export_that_draws_nothing_has_no_such_signature() -> None:
    assert set(ExportOptions().signatures) == {"serving_default", "align", "score"}
    assert set(OPTIONS.signatures) - set(ExportOptions().signatures) == {"complete", "sample"}


def test_long_texts_are_cut_and_that_is_said() -> None:
    options = dataclasses.replace(OPTIONS, max_source_length=4)
    function = graph_of(run_of("k_memory"), options).function("align")
    found = call(function, ["x y z", "x y z x"])
    assert found["source_is_cut"].tolist() == [False, True]
    assert found["source_pieces"][1].tolist() == [b"x", b"y", b"z", b"</s>"]
    assert found["translations"][0].tolist() == found["translations"][1].tolist()


def test_long_translations_are_cut_in_score_and_that_is_said() -> None:
    options = dataclasses.replace(OPTIONS, max_source_length=3)
    function = graph_of(run_of("k_memory"), options).function("score")
    found = call(function, ["x", "x", "x"], ["a b", "a b c a", ""])
    assert found["translation_is_cut"].tolist() == [False, True, False]
    assert found["num_tokens"].tolist() == [3, 3, 1]
    assert found["log_probs"][0] == found["log_probs"][1]


@pytest.mark.parametrize("signature", ["serving_default", "align", "score", "complete", "sample"])
def test_no_texts_have_no_answers(signature: str) -> None:
    texts: list[list[str]] = [[], []] if signature in ("score", "complete") else [[]]
    seeds = {"seed": tf.zeros([0], tf.int32)} if signature == "sample" else {}
    outputs = call(answers("k_memory", signature), *texts, **seeds)
    assert outputs and all(len(output) == 0 for output in outputs.values())


def test_a_place_without_a_hypothesis_has_an_empty_translation() -> None:
    # One step with 5 ids, of which 2 are not written, has fewer targets than there are places.
    model = small_model("k_memory", target_vocab_size=5)
    targets = SymbolVocabulary("ab")
    run = Run(Path("run"), model, SOURCES, targets, 1, {"update": 1}, TextForm(), [])
    options = ExportOptions(5, 5, max_length=1)
    found = call(graph_of(run, options).function("serving_default"), ["x"])
    (expected,) = Translator(run, options.search(model), options.lengths)(["x"], batch_size=1)
    assert found["translations"][0].astype(str).tolist() == [text for text, _ in expected]
    dead = is_dead(found["log_probs"])
    assert dead.any()
    assert not found["num_tokens"][dead].any() and found["num_tokens"][~dead].all()


def test_what_is_aligned_has_no_tokens_if_it_is_dead() -> None:
    options = ExportOptions(2, 2, no_repeat_ngram=1, min_length_ratio=100.0)
    found = call(graph_of(run_of("k_memory"), options).function("align"), ["x y"])
    assert is_dead(found["log_probs"]).all()
    assert found["translations"].tolist() == [[b"", b""]]
    assert found["target_pieces"].shape == (1, 0) and found["alignments"].shape[1] == 0


def test_the_maximum_length_is_kept() -> None:
    graph = graph_of(run_of("none"), dataclasses.replace(OPTIONS, max_length=2))
    assert call(graph.function("serving_default"), TEXTS)["num_tokens"].max() == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"beam_size": 0}, "`beam_size` must be an int >= 1; got 0."),
        ({"beam_size": 4}, "`n_best` must be at most `beam_size`, 4; got 5."),
        ({"n_best": 2.0}, "`n_best` must be an int >= 1; got 2.0."),
        ({"length_penalty": "1"}, "`length_penalty` must be a finite number; got '1'."),
        ({"max_length": 0}, "`max_length` must be an int >= 1; got 0."),
        ({"max_source_length": 2.5}, "`max_source_length` must be an int >= 1; got 2.5."),
        ({"num_samples": -1}, "`num_samples` must be an int >= 0; got -1."),
        ({"prefix": "no"}, "`prefix` must be True or False; got 'no'."),
        ({"temperature": 0}, "`temperature` must be in 0.0001..10000; got 0."),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], message: str) -> None:
    assert refused(ExportOptions, **options) == message
