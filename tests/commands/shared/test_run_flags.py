from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from seq2seq_memattn.commands import train
from seq2seq_memattn.commands.shared import cli, run_flags
from seq2seq_memattn.commands.shared.run_flags import report_slow_products
from seq2seq_memattn.runs import directory, ensemble, translator
from seq2seq_memattn.search.options import Lengths, SearchOptions

RULES: dict[str, Any] = {
    "beam_size": 7,
    "length_penalty": 0.5,
    "length_reward": 0.25,
    "coverage_penalty": 0.125,
    "no_repeat_ngram": 3,
}
RATIOS = {"min_length_ratio": 0.75, "max_length_ratio": 1.5}


def test_every_flag_of_search_reaches_the_translator(monkeypatch: pytest.MonkeyPatch) -> None:
    ids = {"a": [5], "b": [9, 3]}
    run = SimpleNamespace(target_vocabulary=SimpleNamespace(ids_of=ids.get))
    flags = cli.Flags()
    run_flags.define_search(flags)
    flags.integer("max_source_length", None, "as in `define_run`")
    words = [f"--{name}={value}" for name, value in {**RULES, **RATIOS}.items()]
    arguments = flags.parse([*words, "--banned=a,b", "--max_source_length=40"])
    monkeypatch.setattr(translator, "Translator", lambda *given: given)
    given = run_flags.make_translator(run, arguments, n_best=2)
    options = SearchOptions(**RULES, n_best=2, banned=(3, 5, 9))
    assert given[:4] == (run, options, Lengths(**RATIOS), 40)


def test_every_flag_of_a_run_reaches_it(monkeypatch: pytest.MonkeyPatch) -> None:
    flags, loaded = cli.Flags(), []
    run_flags.define_run(flags, together=True)
    options = ["--checkpoint=latest", "--threshold=0.5", "--precision=bfloat16_products"]
    arguments = flags.parse(["--run_dir=a,b", "--ensemble_mean=log_probabilities", *options])

    def load_run(*given: Any) -> Any:
        loaded.append(given)
        return SimpleNamespace(problems=[])

    monkeypatch.setattr(directory, "load_run", load_run)
    monkeypatch.setattr(ensemble, "ensemble_of", lambda runs, mean="probabilities": mean)
    assert run_flags.load_runs(arguments) == "log_probabilities"
    assert loaded == [(Path(one), "latest", 0.5, "bfloat16_products") for one in "ab"]


@pytest.mark.parametrize(
    ("has_units", "has_kernel", "reason"),
    [(False, False, "units"), (True, False, "kernel"), (True, True, "")],
)
def test_products_of_eight_bits_without_units_or_kernel_are_said_to_be_slow(
    has_units: bool,
    has_kernel: bool,
    reason: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("seq2seq_memattn.compute.hardware.has_int8_units", lambda: has_units)
    monkeypatch.setattr("seq2seq_memattn.compute.int8.has_int8_kernel", lambda: has_kernel)
    monkeypatch.setattr("seq2seq_memattn.compute.backend.gpu_name", lambda: None)
    report_slow_products("float32", "int8_products")
    said = capsys.readouterr().err
    assert said.startswith("int8_products will be slow in batches: " if reason else "")
    assert reason in said and said.count("\n") == bool(reason)


def test_products_of_eight_bits_are_said_to_gain_nothing_on_a_gpu(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("seq2seq_memattn.compute.backend.gpu_name", lambda: "a GPU")
    report_slow_products("bfloat16_products", "int8_products")
    assert capsys.readouterr().err == "int8_products gains no speed on a GPU\n"


@pytest.mark.parametrize(
    ("precisions", "has_units", "is_said"),
    [
        (["float32", "bfloat16_products"], False, True),
        (["bfloat16_products"], True, False),
        (["bfloat16_products"], None, False),
        (["float32", "mixed_bfloat16"], False, False),
    ],
)
def test_products_of_bfloat16_without_units_for_them_are_said_to_be_slow(
    precisions: list[str],
    has_units: bool | None,
    is_said: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("seq2seq_memattn.compute.hardware.has_bfloat16_units", lambda: has_units)
    monkeypatch.setattr("seq2seq_memattn.compute.backend.gpu_name", lambda: None)
    report_slow_products(*precisions)
    said = capsys.readouterr().err.splitlines()
    assert len(said) == is_said
    assert all(line.startswith("bfloat16_products will be slow: ") for line in said)
    flags = cli.Flags()
    train.define(flags)
    monkeypatch.setattr(train, "train", lambda *arguments: None)
    words = ["--config=copy_20_k4", "--data_dir=D", "--run_dir=R", f"--precision={precisions[-1]}"]
    train.main(flags.parse(words))
    assert capsys.readouterr().err.splitlines() == said
