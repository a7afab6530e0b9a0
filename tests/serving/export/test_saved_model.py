import dataclasses
import gc
import json
import os
import shutil
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from seq2seq_memattn.attention.registry import label
from seq2seq_memattn.data.locks import locked
from seq2seq_memattn.runs.directory import Run, load_run
from seq2seq_memattn.runs.ensemble import ensemble_of
from seq2seq_memattn.runs.translator import Translator
from seq2seq_memattn.search.options import Sampling, samples
from seq2seq_memattn.serving.export import saved_model as exporting
from seq2seq_memattn.serving.export.options import ExportOptions
from seq2seq_memattn.serving.export.saved_model import export
from seq2seq_memattn.serving.layout import CARD, EXTRA
from seq2seq_memattn.serving.models.loaded_model import LoadedModel
from seq2seq_memattn.serving.protocol.json_tensors import InputBounds
from seq2seq_memattn.serving.protocol.predict import parse_predict
from tests.running import run_python
from tests.serving.clients import running
from tests.serving.export.warmup import assert_warmup_is_answered
from tests.texts import STRANGE, make_text_data, sentences
from tests.training.runs import MODEL, text_run

OPTIONS = ExportOptions(beam_size=2, n_best=2, num_samples=4, temperature=0.8, top_p=0.9)
TEXTS = ["", *sentences(5, seed=4), *STRANGE]
# The program of a user who does not have this project's code.
LOAD = """
import json, sys
import tensorflow as tf, tensorflow_text
model = tf.saved_model.load(sys.argv[1])
inputs = {name: tf.constant(values) for name, values in json.loads(sys.argv[2]).items()}
name = {"seed": "sample", "prefix": "complete"}.get([*inputs][-1], "serving_default")
found = model.signatures[name](**inputs)
assert not any(name.startswith("seq2seq_memattn") for name in sys.modules)
print(json.dumps([[text.decode() for text in row] for row in found["translations"].numpy()]))
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run on text after two updates."""
    folder = tmp_path_factory.mktemp("serving")
    return text_run(make_text_data(folder, 60), folder / "run")


@pytest.fixture(scope="module")
def version(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The first version of an exported model."""
    return export(run, tmp_path_factory.mktemp("exported") / "model", OPTIONS, "float32", "ba dö")


@pytest.fixture(scope="module")
def align(version: Path) -> Any:
    """The signature with the most outputs."""
    model = tf.saved_model.load(str(version))
    function = model.signatures["align"]
    function.model = model  # without the model, the variables would be deleted
    return function


@pytest.mark.slow
def test_a_process_without_the_project_translates_as_it_does(run: Run, version: Path) -> None:
    process = run_python("-c", LOAD, str(version), json.dumps({"text": TEXTS}))
    assert process.returncode == 0, process.stderr.decode()
    expected = Translator(run, OPTIONS.search(run.model))(TEXTS, batch_size=len(TEXTS))
    found = json.loads(process.stdout.splitlines()[-1])
    assert found == [[one.text for one in translations] for translations in expected]


@pytest.mark.slow
def test_a_process_without_the_project_completes_with_an_ensemble(run: Run, tmp_path: Path) -> None:
    other = text_run(run.directory.parent / "data", tmp_path / "other", attention="bahdanau")
    together = ensemble_of([run, other])
    options = ExportOptions(2, 2, prefix=True, coverage_penalty=0.1, no_repeat_ngram=2)
    version = export(together, tmp_path / "model", options, "float32", "ba dö")
    texts, prefixes = sentences(3, seed=4), ["ki", "", "dö ba"]
    inputs = {"text": texts, "prefix": prefixes}
    process = run_python("-c", LOAD, str(version), json.dumps(inputs))
    assert process.returncode == 0, process.stderr.decode()
    translate = Translator(together, options.search(together.model))
    expected = translate(texts, batch_size=3, prefixes=prefixes)
    found = json.loads(process.stdout.splitlines()[-1])
    assert found == [[one.text for one in translations] for translations in expected]
    card = (version / CARD).read_text()
    assert "ensemble of 2 models" in card and "`complete`" in card
    recorded = json.loads((version / EXTRA / exporting.MODELS_NAME).read_text())["models"]
    assert [model["attention"] for model in recorded] == ["k_memory:3", "bahdanau"]


def test_nothing_is_left_of_a_model_that_is_unloaded(version: Path) -> None:
    def num_graphs() -> int:
        gc.collect()
        return sum(type(one).__name__ == "FuncGraph" for one in gc.get_objects())

    before = num_graphs()
    model = LoadedModel(version)
    assert num_graphs() > before
    del model
    assert num_graphs() == before


@pytest.mark.slow
def test_a_process_without_the_project_samples_as_it_does(run: Run, version: Path) -> None:
    texts = sentences(3, seed=4)
    inputs = {"text": texts, "seed": [3, 4, 3]}
    process = run_python("-c", LOAD, str(version), json.dumps(inputs))
    assert process.returncode == 0, process.stderr.decode()
    found = json.loads(process.stdout.splitlines()[-1])
    for row, (text, seed) in enumerate(zip(texts, inputs["seed"], strict=True)):
        sampling = Sampling(OPTIONS.temperature, OPTIONS.top_k, OPTIONS.top_p)
        translate = Translator(run, samples(4, sampling), seed=int(seed))
        (expected,) = translate([text], batch_size=1)
        assert found[row] == [one.text for one in expected]


@pytest.mark.slow
def test_a_server_may_batch_requests_for_samples(version: Path) -> None:
    model = LoadedModel(version)
    signature = model.signatures["sample"]
    assert signature.rows_are_separate
    text = sentences(1, seed=4)[0]
    body = {"signature_name": "sample", "inputs": {"text": [text, "ba"], "seed": [7, 8]}}
    request = parse_predict(json.dumps(body).encode(), model.signatures, InputBounds(10, 1000))
    both = model.run("sample", request.inputs)["translations"]
    for row in range(2):
        alone = {name: array[row : row + 1] for name, array in request.inputs.items()}
        assert model.run("sample", alone)["translations"][0].tolist() == both[row].tolist()


def test_no_operation_calls_python_or_a_gpu_library(version: Path) -> None:
    model = tf.saved_model.load(str(version))
    graphs = [function.graph.as_graph_def() for function in model.signatures.values()]
    names = {
        node.op
        for graph in graphs
        for nodes in (graph.node, *(function.node_def for function in graph.library.function))
        for node in nodes
    }
    assert "SentencepieceTokenizeOp" in names
    assert not [name for name in names if "PyFunc" in name or "Cudnn" in name]


def test_weights_of_training_alone_stay_behind(run: Run, version: Path) -> None:
    saved = dict(tf.train.list_variables(str(version / "variables" / "variables")))
    assert not [name for name in saved if "optimizer" in name.lower()]
    size = sum(path.stat().st_size for path in (version / "variables").iterdir())
    assert size < 4 * 4 * run.model.count_params()  # includes tables for decoding


def test_what_is_beside_the_graph_describes_it(run: Run, version: Path) -> None:
    found = json.loads((version / "assets.extra" / "export.json").read_text(encoding="utf-8"))
    assert found["attention"] == MODEL.attention
    assert found["attention_label"] == label(MODEL.attention)
    assert found["kind"] == "subwords"
    assert (found["beam_size"], found["n_best"], found["example"]) == (2, 2, "ba dö")
    assert found["update"] == run.update
    configuration = json.loads((version / "assets.extra" / "config.json").read_text())
    assert configuration["model"] == run.model.config.to_dict()


def test_warm_up_requests_are_answered(version: Path) -> None:
    assert_warmup_is_answered(version)


def test_the_card_tells_data_scores_and_options(run: Run, tmp_path: Path) -> None:
    directory = tmp_path / "run"
    shutil.copytree(run.directory, directory)
    scores = {"bleu": 12.34, "standard_bleu": 12.5, "chrf": 40.0, "update": run.update}
    signatures = {"signature": "a|b", "standard_bleu_signature": "S2", "chrf_signature": "S3"}
    for name, update in (("flickr", run.update), ("older", run.update - 1)):
        folder = directory / "evaluation" / name
        folder.mkdir(parents=True)
        content = scores | signatures | {"update": update}
        (folder / "evaluation.json").write_text(json.dumps(content))
    folder = directory / "evaluation" / "rounded"
    folder.mkdir()
    content = scores | signatures | {"precision": "int8_products", "threshold": 0.5, "beam_size": 7}
    (folder / "evaluation.json").write_text(json.dumps(content))
    folder = directory / "evaluation" / "average"
    folder.mkdir()
    content = scores | signatures | {"averaged": [run.update - 1, run.update]}
    (folder / "evaluation.json").write_text(json.dumps(content))
    description = exporting.describe(load_run(directory), OPTIONS, "float32")
    card = exporting.model_card(load_run(directory), "model", 3, description)
    assert card.startswith("# model, version 3\n")
    assert "| flickr | BLEU, tokenised | 12.34 | `a\\|b` |" in card
    assert (
        "| rounded, beam_size 7, int8_products, threshold 0.5 | BLEU, tokenised | 12.34 | `a\\|b` |"
        in card
    )
    assert "older" not in card and "average" not in card  # evaluated with other weights
    assert f"Validation BLEU: {run.record['bleu']:.2f}." in card
    record = {"best_bleu": 7.0, "best_update": 1200}
    of_checkpoint = dataclasses.replace(load_run(directory), record=record)
    assert "at most twice as many tokens as its source and 10 more." in card
    longer = description | {"min_length_ratio": 3.0, "beam_size": 7, "ensemble_mean": "M"}
    card = exporting.model_card(of_checkpoint, "model", 3, longer)
    assert "and 10 more, or 10 more than its minimum length if that is more." in card
    assert "ensemble_mean M" in card
    assert "| flickr, without min_length_ratio | BLEU, tokenised | 12.34 |" in card
    description |= {"max_length_ratio": 1.5}
    card = exporting.model_card(of_checkpoint, "model", 3, description)
    assert "has at most 1.5 times as many tokens as its source." in card
    description |= {"max_length": 9}
    card = exporting.model_card(of_checkpoint, "model", 3, description)
    assert "has at most 9 tokens, and at most 1.5 times as many tokens as its source." in card
    assert "Best validation BLEU of the run: 7.00, at update 1,200." in card
    assert "| `sample` | `text`, `seed` (int32 [batch]) |" in card
    assert "num_samples 4, temperature 0.8, top_k 0, top_p 0.9" in card
    without = exporting.describe(load_run(directory), ExportOptions(), "float32")
    assert "sample" not in exporting.model_card(load_run(directory), "model", 3, without)
    assert "| train | 60 |" in card and "`k_memory:3`" in card and "beam_size 2" in card


def test_versions_follow_one_another(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exporting, "write", lambda *given: (given[2] / EXTRA).mkdir())
    (tmp_path / "7").mkdir()
    (tmp_path / "notes").mkdir()
    (tmp_path / ".9.tmp").mkdir()  # a killed export
    (tmp_path / ".mine.tmp").mkdir()  # of somebody else
    assert export(run, tmp_path, OPTIONS, "float32").name == "8"
    assert sorted(os.listdir(tmp_path)) == [".mine.tmp", "7", "8", "notes"]


def test_two_exports_do_not_share_a_folder(run: Run, tmp_path: Path) -> None:
    with locked(tmp_path, "exporting to it"), pytest.raises(ValueError, match="is exporting to it"):
        export(run, tmp_path, OPTIONS, "float32")


def test_a_failed_export_leaves_nothing(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: Any) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(exporting, "write", fail)
    with pytest.raises(OSError, match="disk full"):
        export(run, tmp_path / "model", OPTIONS, "float32")
    assert not os.listdir(tmp_path / "model")


def test_a_full_disk_is_an_error_of_the_folder(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*given: Any, **options: Any) -> None:
        raise tf.errors.ResourceExhaustedError(None, None, "No space left on device")

    monkeypatch.setattr(tf.saved_model, "save", fail)
    with pytest.raises(OSError, match="No space left on device: '.*model'"):
        export(run, tmp_path / "model", OPTIONS, "float32")
    assert not os.listdir(tmp_path / "model")


@pytest.mark.slow
@settings(max_examples=2000, deadline=None, database=None, derandomize=True)
@given(st.lists(st.one_of(st.text(max_size=40), st.binary(max_size=40)), min_size=1, max_size=4))
def test_any_text_is_answered_whatever_else_is_in_its_batch(
    align: Any, texts: list[str | bytes]
) -> None:
    together = {name: value.numpy() for name, value in align(text=tf.constant(texts)).items()}
    alone = {name: value.numpy() for name, value in align(text=tf.constant(texts[:1])).items()}
    assert np.isfinite(together["log_probs"]).all() and np.isfinite(together["alignments"]).all()
    assert not any("\n" in text.decode() for text in together["translations"].ravel())
    is_near = abs(alone["log_probs"][0, 0] - alone["log_probs"][0, 1]) < 1e-4  # they may swap
    if not is_near:
        assert together["translations"][0, 0] == alone["translations"][0, 0]
    np.testing.assert_allclose(together["log_probs"][0], alone["log_probs"][0], atol=1e-4)


@pytest.mark.slow
def test_a_text_of_ten_thousand_tokens_is_answered(align: Any) -> None:
    (translations,) = align(text=tf.constant(["ba " * 10_000]))["translations"].numpy()
    assert len(translations) == OPTIONS.n_best


@pytest.mark.slow
def test_no_text_costs_a_server_much_or_changes_the_answers_of_others(
    run: Run, tmp_path: Path
) -> None:
    version = export(
        run, tmp_path / "model", dataclasses.replace(OPTIONS, max_source_length=64), "float32"
    )
    path = "/v1/models/model:predict"
    hostile = [
        "x " * 2400,
        "\U0001f600" * 1200,
        "\0" * 4900,
        "\u202eab \u0645" * 600,
        "\r\n" * 2000,
    ]
    with running({"model": version.parent}) as server:
        polite = server.post(path, {"instances": ["ba dö"]}).json()
        for text in hostile:
            for signature in ("serving_default", "align"):
                body = {"signature_name": signature, "instances": [text, "ba dö"]}
                started = time.monotonic()
                answer = server.post(path, body)
                assert answer.status_code == 200, answer.json()
                cut, whole = answer.json()["predictions"]
                assert cut["source_is_cut"] and not whole["source_is_cut"]
                assert whole["translations"] == polite["predictions"][0]["translations"]
                assert time.monotonic() - started < 20  # seconds, on a busy machine
                assert len(answer.content) < 1 << 20
        too_long = server.post(path, {"instances": ["x" * 5001]})
        assert too_long.status_code == 400 and "at most 5000 bytes" in too_long.json()["error"]
        assert server.post(path, {"instances": ["ba dö"]}).json() == polite
