"""Speed ratios from files of other studies."""

from pathlib import Path
from typing import Any

from experiments.reproduction.results import write_json
from experiments.reproduction.study import make_study
from experiments.studies import how_much_faster
from tests.running import error_lines, run_here

MADE = {"command": "python -m C", "commit": "0123456789+", "hardware": "H, 2 cores"}


def timed(
    mode: str,
    attention: str,
    seconds: float,
    precision: str = "float32",
    jit_compile: bool = True,
) -> dict[str, Any]:
    spread = [seconds / 2, seconds, 2 * seconds]
    row = {"mode": mode, "length": 200, "attention": attention, "seconds": seconds}
    row |= {"all_seconds": spread, "precision": precision, "jit_compile": jit_compile}
    return {**row, "folded": "auto"}


def test_ratios_are_told_apart_by_sources_system_and_machine(tmp_path: Path) -> None:
    of = make_study("how_much_faster", "small", [], tmp_path, tmp_path)
    assert how_much_faster.results(of) == []
    rows = [
        timed(mode, attention, seconds)
        for mode, ours in (("exact", 2.0), ("uniform", 3.0))
        for attention, seconds in (("k_memory:64", ours), ("bahdanau", 4.0), ("none", 1.0))
    ]
    unfolded = [{**row, "folded": "no", "all_seconds": [9.0]} for row in rows]
    write_json(tmp_path / "decoding/small/by_length.json", {**MADE, "rows": [*rows, *unfolded]})
    others = [
        timed("uniform", attention, seconds, precision, jit_compile)
        for precision, jit_compile, ours in (
            ("bfloat16_products", True, 2.5),
            ("float32", True, 3.2),
            ("float32", False, 1.6),
        )
        for attention, seconds in (("k_memory:64", ours), ("bahdanau", 4.0))
    ]
    write_json(tmp_path / "decoding/small/graphs.json", {**MADE, "rows": others})
    systems = {"pytorch bahdanau": 100.0, "ours k_memory:64": 300.0, "ours bahdanau": 200.0}
    summary = [
        {"system": system, "lengths": "35+-15", "tokens_per_second": speed}
        for system, speed in systems.items()
    ]
    write_json(tmp_path / "speed/news_against_peers.json", {**MADE, "summary": summary})
    begun = {**MADE, "summary": summary[:1]}  # the measurement was interrupted
    write_json(tmp_path / "speed/single_512_beam_1_against_peers.json", begun)
    page = how_much_faster.tables(how_much_faster.results(of))
    where = "H, 2 cores | 0123456789 with changed files | by_length"
    assert f"| 256 units, exactly L tokens | 200 | 2.00 | 0.50 to 8.00 | {where} |" in page
    assert f"| 256 units, 0 to L tokens | 200 | 1.33 | 0.33 to 5.33 | {where} |" in page
    for what, ratio in ((", bfloat16", "1.60"), ("", "1.25"), (", plain graph", "2.50")):
        assert f"| 256 units, 0 to L tokens{what} | 200 | {ratio} |" in page
    assert "| 35 | pytorch bahdanau | 3.00 | 2.00 | 1.50 |" in page


def test_without_files_it_says_where_they_come_from(tmp_path: Path) -> None:
    for flags, advice in (
        ([], "this study only collects those of others, so name their --results_dir"),
        (["--only_tables"], "run without --only_tables to make them"),
    ):
        command = ["how_much_faster", "--scale=small", f"--work_dir={tmp_path}", *flags]
        done = run_here("experiments.reproduce", *command)
        (line,) = error_lines(done)
        assert line.endswith(f"how_much_faster/small: expected results; {advice}")
