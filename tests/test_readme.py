"""What the README tells a reader to type: it runs, in this order, and ends well."""

import gzip
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands import ROOT, run_here
from tests.texts import make_multi30k, pairs

README = (ROOT / "README.md").read_text(encoding="utf-8")
# What makes seconds of minutes, behind what the README says.
SMALLER = {
    "data_prep.copy_task": ["--num_train=60", "--num_valid=12"],
    "data_prep.parallel_text": [],
    "data_prep.multi30k": ["--source_dir=multi30k"],  # downloads are in test_download.py
    "experiments.train": [
        "--num_updates=4",
        "--validate_every=2",
        "--embedding_dim=8",
        "--encoder_units=8",
        "--decoder_units=8",
        "--attention_units=8",
        "--batch_size=8",
        "--checkpoint_minutes=0",  # that minutes of training pass between checkpoints
    ],
    "experiments.evaluate": ["--beam_size=2"],
    "experiments.translate": ["--beam_size=2"],
    "experiments.draw_alignment": ["--beam_size=2"],
    "experiments.api_docs": [],
    "experiments.average_checkpoints": [],
    "experiments.score": [],
    "experiments.export": ["--beam_size=5"],
    "experiments.reproduce": ["--scale=tiny", "--rows=copy_20_none"],
}
START_PROCESSES = ("experiments.launch_local", "experiments.reproduce")
NOT_HERE = {
    "experiments.serve",  # until it is stopped: test_serve.py
    "experiments.compare_peers",  # other projects, which it wants installed
    *START_PROCESSES,
}

SMALLER["experiments.launch_local"] = SMALLER["experiments.train"]  # what it launches


def blocks(language: str) -> list[str]:
    found = re.findall(r"^```(\w*)\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
    return [text for of, text in found if of == language]


def commands() -> list[list[str]]:
    """The commands of the blocks, and those that stand in a sentence."""
    sentences = re.findall(r"`(python -m [^`]+)`", README)
    lines = [line for block in blocks("") for line in block.splitlines()]
    found = [shlex.split(line) for line in [*lines, *sentences]]
    return [words for words in found if words[0] == "python"]


def test_the_python_code_runs() -> None:
    (code,) = blocks("python")
    names: dict[str, object] = {}
    exec(compile(code, "README.md", "exec"), names)
    assert names["logits"].shape == (8, 12, 20)  # type: ignore[attr-defined]


def test_every_make_target_is_there() -> None:
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    named = re.findall(r"^make ([\w-]+)$", README, re.MULTILINE)
    assert len(named) >= 2
    assert set(named) <= set(targets)


def small_options(module: str, options: list[str]) -> list[str]:
    """The options that the README gives, and those that make the command take seconds."""
    options = [re.sub("vocab_size=.*", "vocab_size=400", option) for option in options]
    return [*options, *SMALLER[module]]


def test_the_commands_run_one_after_the_other(tmp_path: Path) -> None:
    for name, count in (("train", 300), ("val", 10)):
        for language, lines in zip(("en", "de"), pairs(count, seed=count), strict=True):
            with gzip.open(tmp_path / f"{name}.{language}.gz", "wt", encoding="utf-8") as stream:
                stream.writelines(f"{line}\n" for line in lines)
    found = commands()
    assert len(found) >= 8
    averaged = next(words for words in found if words[2] == "experiments.average_checkpoints")
    run_dir = averaged[3]
    training = next(words for words in found if run_dir in words)
    # Or there would be one checkpoint to average.
    assert any(option.startswith("--checkpoint_minutes=") for option in training)
    make_multi30k(tmp_path / "multi30k")
    for _, _, module, *options in found:
        if module in NOT_HERE or any("host0" in option for option in options):
            continue
        done = run_here(module, *small_options(module, options), folder=tmp_path)
        assert done.returncode == 0, (module, done.stderr.decode()[-2000:])
    assert len((tmp_path / "copies.txt").read_text().splitlines()) == 12
    assert len((tmp_path / "translations.txt").read_text().splitlines()) == 11


@pytest.mark.slow
def test_the_commands_that_start_processes_run(tmp_path: Path) -> None:
    modules = ("data_prep.copy_task", *START_PROCESSES)
    for _, _, module, *options in (words for words in commands() if words[2] in modules):
        done = subprocess.run(
            [sys.executable, "-m", module, *small_options(module, options)],
            cwd=tmp_path,
            env={"PYTHONPATH": str(ROOT), "PATH": str(Path(sys.executable).parent)},
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, (module, done.stderr.decode()[-2000:])
