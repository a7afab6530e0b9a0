"""The page of decoding speed."""

import json
from pathlib import Path
from typing import Any

import pytest

from experiments.reproduction.pages import write_page
from experiments.reproduction.results import write_json
from experiments.reproduction.study import make_study
from experiments.studies import decoding
from tests.running import run_here

MADE = {"command": "python -m C", "commit": "0123456789", "hardware": "H, 2 cores"}


def row(attention: str, length: int, seconds: float, **more: Any) -> dict[str, Any]:
    return {
        "attention": attention,
        "mode": "exact",
        "length": length,
        "precision": "float32",
        "jit_compile": True,
        "folded": "auto",
        "num_sentences": 512,
        "batch_size": 128,
        "beam_size": 10,
        "units": 256,
        "seconds": seconds,
        "all_seconds": [seconds, 2 * seconds, 0.5 * seconds],
        "target_tokens_per_second": 1234.5,
        "ms_per_step": 6.5,
        "parts_ms": {"cells and attention": 3.0, "output layer": 2.0, "selection": 1.0},
        **more,
    }


def test_each_part_has_a_table_with_ratios_to_rows_of_the_same_shape(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [
        row(attention, length, factor * length)
        for length in (20, 50)
        for attention, factor in (("none", 1.0), ("k_memory:64", 1.5), ("bahdanau", 4.0))
    ]
    graphs = [row("none", 20, 1.0), row("none", 20, 3.0, jit_compile=False)]
    asked = {}

    def measure_times(path: Path, arguments: list[str]) -> None:
        asked[path.name] = arguments
        path.parent.mkdir(parents=True, exist_ok=True)
        write_json(path, {**MADE, "rows": graphs if path.stem == "graphs" else rows})

    monkeypatch.setattr(decoding, "measure_times", measure_times)
    where = (tmp_path, tmp_path / "results")
    decoding.run(make_study("decoding", "small", ["by_length"], *where))
    assert list(asked) == ["by_length.json"]
    of = make_study("decoding", "small", [], *where)
    write_page("decoding", "small", of, decoding.results(of), where[1])
    page = (tmp_path / "results" / "decoding.md").read_text()
    assert page.count("\n## ") == 2  # the last section is "How to repeat it"
    assert "Rows without a result so far (`--rows=NAME` makes one): `attentions`, `growth`" in page
    decoding.run(of)
    write_page("decoding", "small", of, decoding.results(of), where[1])
    page = (tmp_path / "results" / "decoding.md").read_text()
    assert "Rows without a result so far" not in page
    header = "| attention | L | seconds | ms per step | of No Att | of Att |"
    assert header in page
    assert "| K=64 | 50 | 75.00 (37.50 to 150.00) | 6.50 | 1.50 | 0.38 |" in page
    assert "| Att | 20 | 80.00 (40.00 to 160.00) | 6.50 | 4.00 | 1.00 |" in page
    assert "| attention | graph | seconds | tokens/s | compiling |" in page
    assert "| No Att | plain | 3.00 (1.50 to 6.00) | 1,234 | - |" in page
    assert "H, 2 cores, commit 0123456789:\n\n```\npython -m C\n```" in page
    assert "by_length.json" in asked and len(asked) == len(decoding.PARTS)
    drawn = {path.name for path in (tmp_path / "results" / "decoding").glob("*.png")}
    assert drawn == {
        "small_by_length_exact_float32.png",
        "small_steps_of_all.png",
        "small_step_time.png",
    }
    assert "![Time of a decoder step by length of the source](decoding/small_step_time.png)" in page


def test_a_part_that_there_is_not_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="--rows: expected some of by_length, .*; got 'by_width'"):
        make_study("decoding", "small", ["by_width"], tmp_path, tmp_path)


@pytest.mark.slow
def test_all_parts_are_measured_once(tmp_path: Path) -> None:
    arguments = ("experiments.reproduce", "decoding", "--scale=tiny")
    where = f"--work_dir={tmp_path}"
    done = run_here(*arguments, where)
    assert done.returncode == 0, done.stderr
    page = tmp_path / "results" / "decoding_tiny.md"
    text = page.read_text()
    assert text.count("\n## ") == len(decoding.TINY_PARTS) + 1  # the last: "How to repeat it"
    files = list((tmp_path / "results" / "decoding" / "tiny").glob("*.json"))
    assert {path.stem for path in files} == set(decoding.TINY_PARTS)
    memory = json.loads((files[0].parent / "memory.json").read_text())["rows"]
    assert all(found["peak_memory_mib"] > 0 for found in memory)
    assert b"timing: " in done.stderr and b"timing: " not in run_here(*arguments, where).stderr
    assert page.read_text() == text
