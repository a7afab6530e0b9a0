"""The benchmark of preparation and input."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from experiments.benchmarks.process_memory import process_tree_mib
from experiments.benchmarks.varied_corpus import write_varied
from tests.running import error_lines, run_here
from tests.texts import pairs, write_lines


def test_a_varied_corpus_repeats_a_tenth_and_has_new_words(tmp_path: Path) -> None:
    sides = pairs(200, seed=1)
    paths = tmp_path / "a", tmp_path / "b"
    write_varied(sides, 3000, paths, seed=3)
    sources, targets = (path.read_text().splitlines() for path in paths)
    assert len(sources) == len(targets) == 3000
    known = set(zip(*sides, strict=True))
    same = sum(pair in known for pair in zip(sources, targets, strict=True))
    assert 0.1 < same / 3000 < 0.35  # variation leaves some short lines unchanged
    words = {word for line in sides[0] for word in line.split(" ")}
    assert any(word not in words for line in sources for word in line.split(" "))
    again = tmp_path / "c", tmp_path / "d"
    write_varied(sides, 3000, again, seed=3)
    assert [path.read_text().splitlines() for path in again] == [sources, targets]


PARENT_OF_64_MIB = """
import subprocess, sys
child = "held = bytearray(64 << 20); print(1, flush=True); input()"
process = subprocess.Popen(
    [sys.executable, "-c", child], stdin=subprocess.PIPE, stdout=subprocess.PIPE
)
process.stdout.readline()
print(1, flush=True)
input()
process.communicate(b"\\n")
print(2, flush=True)
input()
"""


def test_the_memory_of_a_process_counts_that_of_its_children() -> None:
    command = [sys.executable, "-c", PARENT_OF_64_MIB]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdin is not None
        process.stdout.readline()
        together = process_tree_mib(process.pid)
        process.stdin.write(b"\n")
        process.stdin.flush()
        process.stdout.readline()
        alone = process_tree_mib(process.pid)
        process.communicate(b"\n")
    assert 0 < alone < 36
    assert 64 <= together - alone < 100
    assert process_tree_mib(process.pid) == 0  # the process has ended


@pytest.mark.slow
def test_it_measures_each_size(tmp_path: Path) -> None:
    files = [
        write_lines(tmp_path / name, lines)
        for name, lines in zip(("a", "b"), pairs(2000, seed=1), strict=True)
    ]
    arguments = [
        *("experiments.benchmarks.preparation", "--lines=2500,3000", "--input_seconds=0.5"),
        *("--vocab_size=400", f"--work_dir={tmp_path / 'work'}"),
    ]
    output = tmp_path / "speed.json"
    done = run_here(
        *arguments, f"--source={files[0]}", f"--target={files[1]}", f"--output={output}"
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(output.read_text())
    assert [row["pairs"] for row in result["rows"]] == [2500, 3000]
    for row in result["rows"]:
        assert row["left_out_duplicate"] > 0
        parts = ("reading_seconds", "vocabulary_seconds", "encoding_seconds")
        assert min(row[part] for part in parts) > 0
        assert row["pairs_per_second"] > 0
        assert row["input_target_tokens_per_second"] > 0
        assert 50 < row["peak_memory_mib"] < 2000
    assert not any((tmp_path / "work").iterdir())
    wrong = run_here(*arguments, f"--source={files[0]},{files[0]}", f"--target={files[1]}")
    assert error_lines(wrong) == ["error: expected as many sources as targets; got 4000 and 2000"]
