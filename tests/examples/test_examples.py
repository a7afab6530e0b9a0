"""The programs of `examples/` at small size: they run, learn, and report what they did."""

import ast
import re
from pathlib import Path
from typing import Any

import pytest

import seq2seq_memattn
from tests.pictures import assert_drawn
from tests.running import ROOT, run_here, run_python
from tests.texts import pairs, write_lines

PROGRAMS = sorted((ROOT / "examples").glob("*.py"))
LONGEST_PROGRAM = 120  # lines
SMALL = {
    "dates": ["--examples=300", "--epochs=2"],
    "own_cell": ["--examples=300", "--epochs=2"],
}
ON_JAX = """
import os
import runpy
import sys

sys.modules["tensorflow"] = None  # from here on, importing TensorFlow fails
os.environ["KERAS_BACKEND"] = "jax"
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def run(folder: Path, name: str, *arguments: str) -> list[str]:
    """Runs a program in a folder; returns the lines that it prints."""
    done = run_here(f"examples.{name}", *arguments, folder=folder)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode().splitlines()


def assert_learned(lines: list[str]) -> None:
    losses = [float(loss) for loss in re.findall(r" loss: ([\d.e-]+)", "\n".join(lines))]
    assert len(losses) == 2 and losses[1] < losses[0]


def share(pattern: str, line: str) -> float:
    """The number at the start of a line."""
    found = re.fullmatch(rf"([\d.]+){pattern} after \d+\.\d minutes\.", line)
    assert found, line
    return float(found[1])


@pytest.mark.slow
def test_dates_are_learned_and_one_attention_is_drawn(tmp_path: Path) -> None:
    *lines, summary, result = run(tmp_path, "dates", *SMALL["dates"])
    assert_learned(lines)
    assert all(re.fullmatch(r" *\w.* -> .*", line) for line in lines[-5:])
    assert summary == "Learned from 300 dates; drew the attention map of one: dates.png."
    assert 0.0 <= share("% of 1,000 new dates exact", result) <= 100.0
    assert_drawn(tmp_path / "dates.png")


@pytest.mark.slow
def test_the_loaded_model_with_its_own_cell_sorts_as_the_trained_one(tmp_path: Path) -> None:
    *lines, summary, comparison, result = run(tmp_path, "own_cell", *SMALL["own_cell"])
    assert_learned(lines)
    assert all(re.fullmatch(r"\[\d( \d)+\] -> \[[\d ]*\]", line) for line in lines[-5:])
    assert summary == "Learned from 300 sequences; saved, loaded and searched sorting.keras."
    assert comparison == "100.0% of the results equal those of the model before saving."
    assert 0.0 <= share("% of 1,000 test sequences exact", result) <= 100.0
    assert (tmp_path / "sorting.keras").stat().st_size > 10_000


def test_translation_is_learned_from_two_files(tmp_path: Path) -> None:
    files = []
    for name, sentences in zip(("source", "target"), pairs(300, seed=5), strict=True):
        # Some sentences occur twice, to see that none is in both the training and the test set.
        files.append(f"--{name}={write_lines(tmp_path / name, sentences + sentences[:40])}")
    small = ["--held_out=20", "--vocab_size=90", "--units=16", "--epochs=2"]
    *lines, summary, result = run(tmp_path, "translation", *files, *small)
    assert_learned(lines)
    assert [line.startswith("    ") for line in lines[-15:]] == 5 * [False, True, True]
    assert summary == "Learned from 260 pairs, translated 20 others."
    signature = r"nrefs:1\|case:mixed\|eff:no\|tok:13a\|smooth:exp\|version:[\d.]+"
    assert 0.0 <= share(rf" BLEU \({signature}\)", result) <= 100.0


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_it_runs_on_jax_without_tensorflow(tmp_path: Path, name: str) -> None:
    file = {"dates": "--picture=dates.png", "own_cell": "--model=sorting.keras"}[name]
    option, _, path = file.partition("=")
    arguments = [*SMALL[name], f"{option}={tmp_path / path}"]
    done = run_python("-c", ON_JAX, str(ROOT / "examples" / f"{name}.py"), *arguments)
    assert done.returncode == 0, done.stderr.decode()[-3000:]
    lines = done.stdout.decode().splitlines()
    assert_learned(lines)
    assert lines[-1].endswith(" minutes.")
    assert (tmp_path / path).exists()


@pytest.mark.slow
def test_numbers_come_through_with_placeholders(tmp_path: Path) -> None:
    small = ("--pairs=1500", "--updates=250", f"--folder={tmp_path}")
    *_, without, with_marks, minutes = run(tmp_path, "placeholders", *small)
    shares = [
        float(re.fullmatch(rf"([\d.]+)% of 200 sentences right {name} placeholders.", line)[1])
        for name, line in (("without", without), ("with", with_marks))
    ]
    assert shares[0] < 5.0 and shares[1] > 30.0  # 100 after twice as many updates
    assert re.fullmatch(r"\d+\.\d minutes.", minutes)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "what"), [("dates", "dates"), ("own_cell", "sequences")])
def test_it_learns_its_task_to_99_percent(tmp_path: Path, name: str, what: str) -> None:
    result = run(tmp_path, name)[-1]
    assert share(f"% of 1,000 new {what} exact", result) >= 99.0


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_it_is_short_and_uses_public_names_alone(program: Path) -> None:
    text = program.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= LONGEST_PROGRAM
    public = set(seq2seq_memattn.__all__)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("seq2seq_memattn"):
            assert node.module == "seq2seq_memattn"
            assert {alias.name for alias in node.names} <= public
        elif isinstance(node, ast.Import):
            assert not any(alias.name.startswith("seq2seq_memattn") for alias in node.names)


def test_every_program_stands_in_the_readme() -> None:
    readme = (ROOT / "examples" / "README.md").read_text(encoding="utf-8")
    assert set(re.findall(r"\]\((\w+\.py)\)", readme)) == {path.name for path in PROGRAMS}


def test_placeholders_carry_values_there_and_back() -> None:
    """Repeated values, values that one side lacks or writes otherwise, and an unknown mark."""
    tree = ast.parse((ROOT / "examples" / "placeholders.py").read_text(encoding="utf-8"))
    kinds = (ast.Import, ast.FunctionDef)
    tree.body = [
        node
        for node in tree.body
        if isinstance(node, kinds)
        or (isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "SPECIAL")
    ]
    module: dict[str, Any] = {"Sequence": list, "Path": Path}
    exec(compile(tree, "placeholders", "exec"), module)
    masked, unmasked = module["masked"], module["unmasked"]
    source, _, values = masked("Room 412, 412 at 9.30, see https://a.org/x .")
    assert source == "Room ⟨0⟩, ⟨0⟩ at ⟨1⟩, see ⟨2⟩ ."
    assert unmasked("Um ⟨ 1 ⟩ Raum ⟨0⟩ , ⟨2⟩ .", values) == "Um 9.30 Raum 412 , https://a.org/x ."
    assert unmasked("⟨7⟩", values) == "⟨7⟩"
    source, target, values = masked("12 of 1,000 in 3", "3 von 1.000 in 12")
    assert (source, target) == ("⟨0⟩ of 1,000 in ⟨1⟩", "⟨1⟩ von 1.000 in ⟨0⟩")
    assert unmasked(target, values) == "3 von 1.000 in 12"
