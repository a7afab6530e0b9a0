import logging
import shutil
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from seq2seq_memattn.serving.errors import RequestError
from seq2seq_memattn.serving.export.graph_text import graph_vocabulary
from seq2seq_memattn.serving.models import loaded_model
from seq2seq_memattn.serving.models.loaded_model import LoadedModel
from seq2seq_memattn.vocabulary import SymbolVocabulary
from tests.serving.tiny_models import write_warmup


@pytest.fixture(scope="module")
def reverser(reverser_folder: Path) -> LoadedModel:
    return LoadedModel(reverser_folder / "1")


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> LoadedModel:
    """A model whose vocabulary has two symbols."""
    module = tf.Module()
    module.vocabulary = vocabulary = graph_vocabulary(SymbolVocabulary("ab"))

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="text")])
    def encode(text: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"ids": vocabulary.encode(text).to_tensor()}

    folder = tmp_path_factory.mktemp("closed") / "1"
    tf.saved_model.save(module, str(folder), signatures=encode)
    return LoadedModel(folder)


@pytest.fixture
def copied(reverser_folder: Path, tmp_path: Path) -> Path:
    """A copy of a version's folder, which tests may change."""
    return Path(shutil.copytree(reverser_folder / "1", tmp_path / "1"))


def texts(*values: str) -> dict[str, np.ndarray]:
    return {"text": np.array([value.encode() for value in values], object)}


def test_signatures_have_the_specs_of_the_saved_model(reverser: LoadedModel) -> None:
    assert reverser.version == 1
    assert reverser.export == {"attention": "k_memory:4", "n_best": 2}
    assert reverser.signatures.keys() == {"serving_default", "align", "score"}
    default = reverser.signatures["serving_default"]
    assert default.inputs["text"].shape == (None,) and default.inputs["text"].dtype == object
    shapes = {name: spec.shape for name, spec in default.outputs.items()}
    assert shapes == {
        "log_probs": (None, 2),
        "num_tokens": (None, 2),
        "source_is_cut": (None,),
        "translations": (None, 2),
    }
    assert default.outputs["num_tokens"].dtype == np.int32
    assert default.rows_are_separate
    assert reverser.signatures["score"].rows_are_separate
    assert not reverser.signatures["align"].rows_are_separate
    assert reverser.signatures["align"].outputs["alignments"].shape == (None, None, None)


def test_missing_gradients_are_not_reported(
    reverser: LoadedModel, caplog: pytest.LogCaptureFixture
) -> None:
    del reverser
    for text in ("f: ops with unsaved custom gradients.", "other"):
        logging.getLogger("absl").warning(text)
    assert "unsaved" not in caplog.text and "other" in caplog.text


def test_it_computes_arrays_from_arrays(reverser: LoadedModel) -> None:
    outputs = reverser.run("serving_default", texts("a b c", ""))
    assert outputs["translations"].tolist() == [[b"c b a", b"c b a!"], [b"", b"!"]]
    assert outputs["num_tokens"].dtype == np.int32
    assert list(outputs) == sorted(outputs)


def test_a_model_without_batches_has_no_rows(half_plus_two_folder: Path) -> None:
    model = LoadedModel(half_plus_two_folder / "123")
    assert model.export == {}
    assert not model.signatures["countdown"].has_rows
    count = {"count": np.array(3, np.int32)}
    assert model.run("countdown", count)["numbers"].tolist() == [3, 2, 1]


def test_what_the_model_refuses_is_said_without_its_graph(reverser: LoadedModel) -> None:
    with pytest.raises(RequestError) as raised:
        reverser.run("serving_default", texts("a @ b"))
    assert raised.value.status == 400
    assert raised.value.message == "no symbol for a @ b"


@pytest.mark.parametrize("symbol", ["wrong", "dö", "it's", "{{x}}", "[[1]]", '"\\"'])
def test_an_unknown_symbol_is_named_as_it_came(closed: LoadedModel, symbol: str) -> None:
    with pytest.raises(RequestError) as raised:
        closed.run("serving_default", texts("a b", f"a {symbol} b"))
    assert raised.value.status == 400
    assert raised.value.message == f"unknown symbol '{symbol}'"


@pytest.mark.parametrize(
    ("symbol", "named"), [(b"a\n\tb", r"a\n\tb"), (b"a\xff", "a\N{REPLACEMENT CHARACTER}")]
)
def test_an_unknown_symbol_of_any_bytes_is_named_in_one_line(
    closed: LoadedModel, symbol: bytes, named: str
) -> None:
    with pytest.raises(RequestError) as raised:
        closed.run("serving_default", {"text": np.array([symbol], object)})
    assert raised.value.status == 400
    assert raised.value.message == f"unknown symbol '{named}'"


def test_other_failures_of_the_model_do_not_repeat_the_text(
    reverser: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(**inputs: object) -> None:
        raise tf.errors.ResourceExhaustedError(None, None, f"no memory for {inputs}")

    class Failing:
        signatures = {"serving_default": fail}

    monkeypatch.setattr(reverser, "_model", Failing())
    with pytest.raises(RequestError, match="^the model failed: ResourceExhausted") as raised:
        reverser.run("serving_default", texts("secret"))
    assert raised.value.status == 500


def test_recorded_requests_are_run_before_the_model_is_there(
    copied: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    run = LoadedModel.run

    def recorded(self: LoadedModel, signature: str, inputs: dict[str, np.ndarray]) -> object:
        asked.append((signature, inputs["text"].tolist()))
        return run(self, signature, inputs)

    monkeypatch.setattr(LoadedModel, "run", recorded)
    LoadedModel(copied)
    assert asked == [("serving_default", [b"a b"])]


def test_a_model_that_refuses_its_own_recorded_requests_is_not_loaded(copied: Path) -> None:
    write_warmup(copied / loaded_model.WARMUP_REQUESTS, "a @")
    with pytest.raises(ValueError, match="cannot be loaded: no symbol for a @$"):
        LoadedModel(copied)


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("saved_model.pb", b""),
        ("saved_model.pb", b"\xff" * 50),
        ("variables/variables.index", None),
        ("variables/variables.data-00000-of-00001", b""),
        (loaded_model.WARMUP_REQUESTS, b"\xff" * 50),
        (loaded_model.EXPORT, b"{"),
    ],
)
def test_a_damaged_folder_is_one_error_that_names_it(
    copied: Path, file: str, content: bytes | None
) -> None:
    (copied / file).unlink()
    if content is not None:
        (copied / file).write_bytes(content)
    with pytest.raises(ValueError, match=rf"{copied}: the model cannot be loaded: .") as raised:
        LoadedModel(copied)
    assert "\n" not in str(raised.value)
