import dataclasses
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from experiments import speed
from experiments.benchmarks.step_parts import step_parts
from experiments.benchmarks.time_plots import draw_times
from experiments.benchmarks.timed_work import Setting, Work, make_sources, make_work
from seq2seq_memattn.attention.registry import ATTENTION_NAMES
from seq2seq_memattn.commands.shared import cli
from seq2seq_memattn.data.manifest import read_manifest
from seq2seq_memattn.vocabulary import NUM_SPECIAL_IDS, vocabulary_from_dict
from tests.pictures import assert_drawn
from tests.running import run_python
from tests.texts import make_text_data


def options(**given: Any) -> SimpleNamespace:
    defaults = {
        "lengths": ["3"],
        "attentions": ["none", "luong_dot"],
        "modes": ["exact"],
        "precisions": ["float32"],
        "beam_size": 2,
        "batch_size": 4,
        "num_sentences": 6,
        "units": 8,
        "vocab_size": 5,
        "deviation": 2.0,
        "input_feeding": True,
        "graphs": ["xla"],
        "folded": ["auto"],
        "threads": None,
        "parts": False,
        "run_dir": None,
        "source": None,
        "data_dir": None,
        "split": None,
        "figure": None,
        "given": set(),
    }
    return SimpleNamespace(**{**defaults, **given})


def test_the_help_of_its_attentions_names_all() -> None:
    flags = cli.Flags()
    speed.define(flags)
    words = flags.help("", "").replace(",", "").split()
    for name in ATTENTION_NAMES:
        assert name in words, name


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"lengths": ["20", "-3"]}, "--lengths: expected whole numbers above 0; got '-3'"),
        (
            {"modes": ["exact", "fast"]},
            "--modes: expected some of exact, uniform, normal, train; got 'fast'",
        ),
        (
            {"data_dir": "data"},
            "--data_dir and --split: expected both or neither, and not with --run_dir",
        ),
        ({"run_dir": "runs/x"}, "--run_dir and --source: expected both or neither"),
        (
            {"run_dir": "runs/x", "source": "text", "given": {"folded"}},
            "--folded: has no effect with --run_dir",
        ),
        (
            {"data_dir": "data", "split": "valid", "given": {"lengths"}},
            "--lengths: has no effect with --data_dir",
        ),
        ({"figure": "speed.png"}, "--figure: expected a name without an ending; got 'speed.png'"),
        ({"figure": "speed", "folded": ["yes", "no"]}, "--figure: expected random sources and"),
        ({"graphs": ["xla", "eager"]}, "--graphs: expected some of xla, plain; got"),
        ({"parts": True, "modes": ["train"]}, "--parts: expected decoding by untrained models"),
        (
            {"precisions": ["int4"], "modes": ["exact"]},
            "--precisions: expected some of .*, int8_products; got",
        ),
        (
            {"precisions": ["int8_products"], "modes": ["train"]},
            "--precisions: expected some of .*, float64; got",
        ),
    ],
)
def test_wrong_options_are_named(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        speed._settings(options(**given))


@pytest.mark.slow
def test_the_sources_of_a_data_directory_are_decoded_to_the_lengths_of_its_targets(
    tmp_path: Path,
) -> None:
    data_dir = make_text_data(tmp_path, 60)
    given = options(data_dir=str(data_dir), split="valid", attentions=["none"])
    (group,) = speed._settings(given)
    setting = dataclasses.replace(group[0], num_sentences=5, beam_size=2, units=4)
    assert setting.mode == "data" and setting.described()["split"] == "valid"
    manifest = read_manifest(data_dir)
    assert setting.model_config().max_source_length == 1 + manifest.split("valid").max_source_length
    vocabulary = vocabulary_from_dict(manifest.target_vocabulary, data_dir)
    assert setting.vocab_size == vocabulary.size - NUM_SPECIAL_IDS
    targets = (data_dir / "valid.target.txt").read_text(encoding="utf-8").splitlines()[:5]
    work = make_work(dataclasses.replace(setting, jit_compile=False))
    assert work.run() == sum(len(vocabulary.encode(target)) + 1 for target in targets)


def test_rows_of_one_mode_take_turns() -> None:
    decoding, training = speed._settings(
        options(
            modes=["exact", "train"],
            lengths=["3", "5"],
            precisions=["float32", "float64"],
            graphs=["xla", "plain"],
        )
    )
    assert {one.mode for one in decoding} == {"exact"} and len(decoding) == 2 * 2 * 2 * 2
    assert {one.mode for one in training} == {"train"} and len(training) == 2 * 2 * 2
    assert [
        (one.length, one.attention, one.precision, one.jit_compile) for one in decoding[:5]
    ] == [
        (3, "none", "float32", True),
        (3, "none", "float32", False),
        (3, "none", "float64", True),
        (3, "none", "float64", False),
        (3, "luong_dot", "float32", True),
    ]


def test_a_row_has_percentiles_of_single_sentences_and_the_time_of_a_step() -> None:
    setting = Setting("none", "exact", 3, 1, 4)
    work = Work([], lambda: None, 16)
    turns = [
        speed._Turn(16, [seconds, 0.001, 0.002, 0.003], 0.002)
        for seconds in (5.0, 0.004, 0.004, 0.010)
    ]
    row = speed._row(setting, work, turns)
    assert row["seconds"] == 0.01 and row["compile_seconds"] == 5.0
    assert (row["p50_ms"], row["p95_ms"]) == (2.5, 6.7)  # of 12 sentences; turn 1 is left out
    assert row["steps_seconds"] == 0.008 and row["ms_per_step"] == 0.5
    assert "p50_ms" not in speed._row(dataclasses.replace(setting, batch_size=2), work, turns)


@pytest.mark.parametrize("jit_compile", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_the_parts_of_a_step_are_timed(jit_compile: bool) -> None:
    setting = Setting("k_memory:2", "uniform", 4, 3, 5, 2, 4, 5, jit_compile=jit_compile)
    parts = step_parts(setting)
    assert set(parts) == {"cells and attention", "output layer", "selection"}
    assert all(milliseconds > 0 for milliseconds in parts.values())


@pytest.mark.parametrize(
    ("mode", "shortest", "longest"), [("exact", 30, 30), ("uniform", 0, 30), ("normal", 1, 100)]
)
def test_sources_have_the_lengths_and_symbols_of_their_setting(
    mode: str, shortest: int, longest: int
) -> None:
    setting = Setting("none", mode, 30, 4, 400, vocab_size=7, deviation=40.0)
    sources = make_sources(setting)
    lengths = [len(source) for source in sources]
    assert (min(lengths), max(lengths)) == (shortest, longest)
    assert set(np.concatenate(sources)) == set(range(NUM_SPECIAL_IDS, NUM_SPECIAL_IDS + 7))
    other = make_sources(Setting("bahdanau", mode, 30, 8, 400, vocab_size=7, deviation=40.0))
    assert all(np.array_equal(ours, theirs) for ours, theirs in zip(sources, other, strict=True))


def test_a_row_says_what_shaped_its_figures_and_no_more() -> None:
    exact = Setting("luong_dot", "exact", 30, 4, 40, units=6).described()
    assert exact["units"] == 6 and "deviation" not in exact and "run_dir" not in exact
    assert Setting("none", "normal", 30, 4, 40).described()["deviation"] == 15.0
    train = Setting("none", "train", 30, 4, 40).described()
    assert not {"beam_size", "jit_compile", "folded"} & set(train)
    run = Setting("none", "run", 0, 4, 40, run_dir="runs/x").described()
    assert run["run_dir"] == "runs/x" and not {"length", "units", "vocab_size"} & set(run)
    assert Setting("luong_dot", "exact", 30, 4, 40, units=6).model_config().attention == "luong_dot"


def test_each_mode_and_format_has_a_figure_of_its_own(tmp_path: Path) -> None:
    rows = [
        {
            "attention": attention,
            "mode": mode,
            "length": length,
            "precision": precision,
            "num_sentences": 1000,
            "batch_size": 128,
            "beam_size": 10,
            "units": 256,
            "seconds": 0.1 * length,
        }
        for attention in ("k_memory:64", "bahdanau")
        for mode in ("uniform", "train")
        for precision in ("float32", "bfloat16_products")
        for length in (20, 50)
    ]
    drawn = draw_times([*rows, {**rows[0], "mode": "run"}], tmp_path / "time")
    assert {path.stem for path in drawn} == {
        "time_uniform_float32",
        "time_uniform_bfloat16_products",
        "time_train_float32",
        "time_train_bfloat16_products",
    }
    assert_drawn(*drawn)


ON_JAX = """
import os, sys
sys.modules["tensorflow"] = None  # importing it fails from here on
os.environ["KERAS_BACKEND"] = "jax"
import json
from experiments import speed
from experiments.benchmarks.timed_work import Setting
settings = [Setting("k_memory:4", mode, 3, 2, 4, beam_size=2, units=8) for mode in sys.argv[1:]]
print(json.dumps(speed.measure(settings, repeats=1)))
"""


@pytest.mark.slow
def test_without_tensorflow_what_jax_does_is_measured() -> None:
    done = run_python("-c", ON_JAX, "uniform", "train")
    assert done.returncode == 0, done.stderr
    decoding, training = json.loads(done.stdout.splitlines()[-1])
    assert decoding["steps_seconds"] > 0 and training["target_tokens_per_second"] > 0
