"""A user's model as a SavedModel answers like search."""

from functools import partial
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from seq2seq_memattn import (
    AttentionDecoder,
    KMemoryAttention,
    LinearAttention,
    Searchable,
    beam_search,
    export_searchable,
)
from seq2seq_memattn.serving.errors import RequestError
from seq2seq_memattn.serving.layout import CARD
from seq2seq_memattn.serving.models.loaded_model import LoadedModel
from seq2seq_memattn.vocabulary import END_ID, CharacterVocabulary
from tests.errors import refused
from tests.inputs import randomise, tensor
from tests.marks import slow
from tests.running import run_python
from tests.search import own_parts
from tests.search.models import small_model
from tests.serving.clients import running
from tests.serving.export.warmup import assert_warmup_is_answered
from tests.tolerances import as_array, assert_close

SIZE = 9
WORDS = ["", "[UNK]", "[START]", "[END]", "red", "green", "blue", "grey", "pink"]


def searchable(**ids: int) -> Searchable:
    """A small model with random weights."""
    source, target = keras.Input((None,), dtype="int32"), keras.Input((None,), dtype="int32")
    embedding = keras.layers.Embedding(SIZE, 5)
    encode = keras.Model(source, keras.layers.GRU(6, return_sequences=True)(embedding(source)))
    decoder = AttentionDecoder(keras.layers.GRUCell(7), KMemoryAttention(3), mixing_units=4)
    logits = keras.layers.Dense(SIZE)
    model = keras.Model([source, target], logits(decoder(embedding(target), encode(source))))
    randomise(model, scale=1.5)
    return Searchable(encode, embedding, decoder, logits, **ids)


def answer(folder: Path, signature: str, **texts: list[str]) -> dict[str, Any]:
    function = tf.saved_model.load(str(folder)).signatures[signature]
    found = function(**{name: tf.constant(each) for name, each in texts.items()})
    return {name: as_array(value) for name, value in found.items()}


@pytest.mark.parametrize(
    ("ids", "vocabulary", "text", "source"),
    [
        *slow(({}, None, "4 7 5", [4, 7, 5])),
        ({"start_id": 2, "end_id": 3}, WORDS, "red grey mauve", [4, 7, 1]),
    ],
    ids=["numbers", "words"],
)
def test_answers_are_those_of_search(
    ids: dict[str, int], vocabulary: Any, text: str, source: list[int], tmp_path: Path
) -> None:
    model = searchable(**ids)
    model.logits.bias.assign(2.0 * np.eye(SIZE)[model.ids[END_ID]])  # so that targets end
    folder = export_searchable(
        model,
        tmp_path / "own",
        vocabulary,
        vocabulary,
        beam_size=np.int64(4),
        n_best=2,
        max_length=6,
    )
    assert folder == tmp_path / "own" / "1"
    found = answer(folder, "serving_default", text=[text, "", text])
    given = tensor([source], "int32")
    expected = beam_search(model, given, 4, n_best=2, max_length=6, return_alignments=True)
    names = vocabulary or [str(index) for index in range(SIZE)]
    for rank in range(2):
        length = int(expected.lengths[0, rank])
        tokens = as_array(expected.tokens)[0, rank, :length]
        written = " ".join(names[token] for token in tokens)
        assert [one.decode() for one in found["translations"][[0, 2], rank]] == [written] * 2
        assert found["num_tokens"][0, rank] == as_array(expected.steps)[0, rank]
    assert_close(found["log_probs"][0], expected.log_probs[0])
    assert found["translations"][1, 0] == b""

    aligned = answer(folder, "align", text=[text])
    steps = int(as_array(expected.steps)[0, 0])
    assert [piece.decode() for piece in aligned["source_pieces"][0]] == [names[i] for i in source]
    assert_close(aligned["alignments"][0], as_array(expected.alignments)[0, 0, :steps])

    finished = [rank for rank in range(2) if as_array(expected.is_finished)[0, rank]]
    assert finished
    for rank in finished:
        translation = found["translations"][0, rank].decode()
        scored = answer(folder, "score", text=[text], translation=[translation])
        assert_close(scored["log_probs"], expected.log_probs[0, rank : rank + 1])


@pytest.mark.slow
def test_a_server_answers_with_it_and_says_what_it_refuses(tmp_path: Path) -> None:
    folder = export_searchable(
        searchable(), tmp_path / "own", example="4 5", num_samples=2, n_best=1, beam_size=2
    )
    with running({"own": folder.parent}) as server:
        page = server.get("/")
        (found,) = server.post("/v1/models/own:predict", {"instances": ["4 5"]}).json()[
            "predictions"
        ]
        drawn = {"signature_name": "sample", "instances": [{"text": "4 5", "seed": 1}]}
        (samples,) = server.post("/v1/models/own:predict", drawn).json()["predictions"]
        wrong = server.post("/v1/models/own:predict", {"instances": ["4 x5"]})
    expected = answer(folder, "serving_default", text=["4 5"])
    assert found["translations"] == [text.decode() for text in expected["translations"][0]]
    assert len(samples["translations"]) == 2
    assert (wrong.status_code, page.status_code) == (400, 200)
    assert "unknown symbol 'x5'" in wrong.json()["error"]
    assert LoadedModel(folder).export["attention"] == "KMemoryAttention"
    assert "`KMemoryAttention`" in (folder / CARD).read_text()


@pytest.mark.slow
def test_a_source_ends_and_is_cut_as_the_model_expects(tmp_path: Path) -> None:
    model = searchable()
    folder = export_searchable(
        model, tmp_path / "own", source_end_id=2, max_source_length=3, beam_size=2, n_best=1
    )
    found = answer(folder, "align", text=["4 5", "4 5 6"])
    pieces = [[piece.decode() for piece in row] for row in found["source_pieces"]]
    assert pieces == [["4", "5", "</s>"]] * 2
    assert found["source_is_cut"].tolist() == [False, True]
    expected = beam_search(model, tensor([[4, 5, 2]], "int32"), 2)
    assert_close(found["log_probs"][:1], expected.log_probs)


def test_sources_are_padded_to_the_length_that_the_encoder_declares(tmp_path: Path) -> None:
    source, target = keras.Input((4,), dtype="int32"), keras.Input((None,), dtype="int32")
    embedding = keras.layers.Embedding(SIZE, 5)  # no mask: the model reads padding
    encoded = keras.layers.GRU(6, return_sequences=True)(embedding(source))
    decoder = AttentionDecoder(keras.layers.GRUCell(7), KMemoryAttention(3), mixing_units=4)
    outputs = keras.layers.Dense(SIZE)(decoder(embedding(target), encoded))
    model = keras.Model([source, target], outputs)
    randomise(model, scale=1.5)
    own = Searchable.from_model(model)
    folder = export_searchable(own, tmp_path / "own", beam_size=2, n_best=1, max_length=6)
    found = answer(folder, "serving_default", text=["4 5", "4 5 6 7 5"])
    assert found["source_is_cut"].tolist() == [False, True]
    expected = beam_search(own, tensor([[4, 5, 0, 0], [4, 5, 6, 7]], "int32"), 2, max_length=6)
    assert_close(found["log_probs"], expected.log_probs)


def test_a_given_text_neither_starts_nor_ends_in_its_middle(tmp_path: Path) -> None:
    words = ["", "[START]", "[END]", *"abcdef"]
    folder = export_searchable(
        searchable(),
        tmp_path / "own",
        WORDS,  # with words that the target cannot encode
        words,
        beam_size=2,
        n_best=1,
        prefix=True,
    )
    model = LoadedModel(folder)  # runs the requests of the warm-up
    texts = np.array(["red", "green"], object)
    prefixes = np.array(["a [END] b", "[START] a"], object)
    for signature, name in (("complete", "prefix"), ("score", "translation")):
        for ask in (partial(model.run, signature), model.check):
            with pytest.raises(RequestError, match=r"unknown symbol '\[END\]'"):
                ask({"text": texts, name: prefixes})


@pytest.mark.slow
@pytest.mark.parametrize(
    "vocabulary",
    [None, WORDS, ["", *"abcdefgh"]],
    ids=["numbers", "words", "no unknown ones"],
)
def test_its_warm_up_is_of_a_token_that_the_vocabulary_has(vocabulary: Any, tmp_path: Path) -> None:
    folder = export_searchable(
        searchable(), tmp_path / "own", vocabulary, vocabulary, beam_size=2, n_best=1
    )
    assert_warmup_is_answered(folder)


@pytest.fixture(scope="module")
def model() -> Searchable:
    return searchable(start_id=2, end_id=3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"beam_size": 0}, "`beam_size` must be an int >= 1; got 0."),
        ({"beam_size": "4"}, "`beam_size` must be an int >= 1; got '4'."),
        ({"beam_size": 2, "n_best": 3}, "`n_best` must be at most `beam_size`, 2; got 3."),
        ({"max_length": -1}, "`max_length` must be an int >= 1; got -1."),
        ({"num_samples": 1.5}, "`num_samples` must be an int >= 0; got 1.5."),
        ({"num_samples": 2, "top_p": 2}, "`top_p` must be above 0 and at most 1; got 2."),
        ({"length_penalty_exponent": 0.6}, "`length_penalty_exponent`: expected one of beam_size,"),
        ({"source_end_id": 9}, "`source_end_id` must be an int in 0..8; got 9."),
        ({"source_end_id": 0}, "`source_end_id`: expected another id than padding, 0."),
        ({"source_end_id": 2.0}, "`source_end_id` must be an int in 0..8; got 2.0."),
        (
            {"source_vocabulary": ["", "a", "a"]},
            "`source_vocabulary`: expected each token of a vocabulary once; got 'a' twice.",
        ),
        ({"source_vocabulary": []}, "`source_vocabulary`: expected a vocabulary with tokens; got"),
        ({"source_vocabulary": "words.txt"}, "a list of strings, or None; got 'words.txt'."),
        ({"target_vocabulary": [3]}, "`target_vocabulary`: expected a list of strings; got 3 in"),
        (
            {"source_vocabulary": [*WORDS, "black"]},
            "`source_vocabulary`: expected at most 9 ids, which the model embeds; got 10.",
        ),
        ({"target_vocabulary": WORDS[:5]}, "`target_vocabulary`: expected a token for each of 9"),
        (
            {"target_vocabulary": CharacterVocabulary(list("abcdef"), "characters.txt")},
            "`target_vocabulary`: expected a token for each of 9 ids; got 10.",
        ),
        (
            {"target_vocabulary": CharacterVocabulary(list("abcde"), "characters.txt")},
            "has padding 0, start 1 and end 2; the model has 0, 2, 3.",
        ),
        (
            {"source_vocabulary": ["", "red"], "example": "green"},
            "`example`: expected a text that the source vocabulary can encode; got 'green'.",
        ),
        ({"example": "4 x"}, "can encode; got '4 x'."),
        ({"example": 4}, "can encode; got 4."),
        ({"banned": (99,)}, "`banned`: expected ids in 0..8; got 99."),
        ({"example": "4 9"}, "can encode; got '4 9'."),
        ({"example": "4 0"}, "can encode; got '4 0'."),  # padding
    ],
)
def test_wrong_arguments_are_refused_before_anything_is_written(
    options: dict[str, Any], message: str, model: Searchable, tmp_path: Path
) -> None:
    assert message in refused(export_searchable, model, tmp_path / "own", **options)
    assert not list(tmp_path.iterdir())


def test_a_seq2seq_of_ones_own_is_exported(tmp_path: Path) -> None:
    model = small_model("k_memory")
    folder = export_searchable(
        model, tmp_path / "own", source_end_id=END_ID, beam_size=3, n_best=2, max_length=5
    )
    found = answer(folder, "serving_default", text=["4 3", "3"])
    expected = beam_search(model, np.array([[4, 3, 2], [3, 2, 0]]), 3, n_best=2, max_length=5)
    assert_close(found["log_probs"], expected.log_probs)
    for row in range(2):
        length = int(expected.lengths[row, 0])
        written = " ".join(map(str, as_array(expected.tokens)[row, 0, :length]))
        assert found["translations"][row, 0].decode() == written


def test_a_coverage_penalty_needs_alignments_that_are_shares(tmp_path: Path) -> None:
    own = own_parts.make(attention=LinearAttention(3)).searchable()
    message = refused(export_searchable, own, tmp_path / "own", coverage_penalty=0.1)
    assert message.startswith(
        "`coverage_penalty`: expected an attention whose alignments are shares"
    )
    assert not list(tmp_path.iterdir())


def test_a_source_vocabulary_with_another_padding_is_refused(tmp_path: Path) -> None:
    vocabulary = CharacterVocabulary(list("abcde"), "characters.txt")
    message = refused(
        export_searchable, searchable(pad_id=3), tmp_path / "own", source_vocabulary=vocabulary
    )
    assert message == "`source_vocabulary`: a Vocabulary has padding 0; the model has 3."


def test_another_model_than_a_searchable_is_refused(model: Searchable, tmp_path: Path) -> None:
    message = refused(export_searchable, model.encoder, tmp_path / "own")
    assert message == "`searchable`: expected a Searchable or a Seq2Seq; got Functional."


@pytest.mark.slow
def test_it_runs_without_this_package(tmp_path: Path) -> None:
    vocabulary = CharacterVocabulary(list("abcde"), "characters.txt")
    folder = export_searchable(searchable(), tmp_path / "own", vocabulary, vocabulary)
    script = (
        "import sys; sys.modules['seq2seq_memattn'] = None\n"
        "import tensorflow as tf\n"
        "model = tf.saved_model.load(sys.argv[1])\n"
        "found = model.signatures['serving_default'](text=tf.constant(['abc', 'e']))\n"
        "print(found['log_probs'].numpy().tolist())"
    )
    done = run_python("-c", script, str(folder))
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    expected = answer(folder, "serving_default", text=["abc", "e"])["log_probs"]
    np.testing.assert_allclose(eval(done.stdout), expected, rtol=1e-6)


def test_keras_layers_are_exported_without_cudnn_and_stay_as_they_were(tmp_path: Path) -> None:
    seen = set()

    @keras.saving.register_keras_serializable("tests")
    class Watched(keras.layers.GRU):
        def inner_loop(self, *arguments: Any, **options: Any) -> Any:
            seen.add(self.use_cudnn)
            return super().inner_loop(*arguments, **options)

    source, target = keras.Input((None,), dtype="int32"), keras.Input((None,), dtype="int32")
    embedding, gru = keras.layers.Embedding(SIZE, 5), Watched(6, return_sequences=True)
    encode = keras.Model(source, keras.layers.Bidirectional(gru)(embedding(source)))
    decoder = AttentionDecoder(keras.layers.GRUCell(7), KMemoryAttention(3))
    logits = keras.layers.Dense(SIZE)
    keras.Model([source, target], logits(decoder(embedding(target), encode(source))))
    seen.clear()
    export_searchable(Searchable(encode, embedding, decoder, logits), tmp_path, max_length=3)
    assert seen == {False}
    both = encode.layers[-1]
    assert (both.forward_layer.use_cudnn, both.backward_layer.use_cudnn) == ("auto", "auto")
