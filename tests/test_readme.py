"""What the README tells a reader to type: it runs, in this order, and ends well."""

import contextlib
import gzip
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.running import ROOT, run_here
from tests.texts import make_multi30k, pairs

README = (ROOT / "README.md").read_text(encoding="utf-8")
# What makes seconds of minutes, behind what the README says.
SMALLER = {
    "memattn copy_task": ["--num_train=60", "--num_valid=12"],
    "memattn parallel_text": [],
    "memattn multi30k": ["--source_dir=multi30k"],  # downloads are in test_download.py
    "memattn train": [
        "--num_updates=4",
        "--validate_every=2",
        "--embedding_dim=8",
        "--encoder_units=8",
        "--decoder_units=8",
        "--attention_units=8",
        "--batch_size=8",
        "--checkpoint_minutes=0",  # that minutes of training pass between checkpoints
    ],
    "memattn evaluate": ["--beam_size=2"],
    "memattn translate": ["--beam_size=2"],
    "memattn draw_alignment": ["--beam_size=2"],
    "experiments.api_docs": [],
    "memattn average_checkpoints": [],
    "memattn score": [],
    "memattn export": ["--beam_size=5"],
    "experiments.reproduce": ["--scale=tiny", "--rows=copy_20_none"],
}
START_PROCESSES = ("memattn launch_local", "experiments.reproduce")
NOT_HERE = {
    "memattn serve",  # until it is stopped: test_serve.py
    "experiments.benchmarks.compare_peers",  # other projects, which it wants installed
    *START_PROCESSES,
}

SMALLER["memattn launch_local"] = SMALLER["memattn train"]  # what it launches


def blocks(language: str, text: str = README) -> list[str]:
    found = re.findall(r"^```(\w*)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    return [code for of, code in found if of == language]


def commands() -> list[list[str]]:
    """The commands of the blocks, and those that stand in a sentence."""
    sentences = re.findall(r"`(memattn [^`]* --[^`]+|python -m experiments[^`]+)`", README)
    lines = [line for block in blocks("") for line in block.replace("\\\n", "").splitlines()]
    found = [shlex.split(line) for line in [*lines, *sentences]]
    installed = [["memattn " + words[1], *words[2:]] for words in found if words[0] == "memattn"]
    in_a_clone = [
        words[2:] for words in found if words[:2] == ["python", "-m"] and words[2] != "pip"
    ]
    return [*installed, *in_a_clone]


def module_and_arguments(command: str, options: list[str]) -> list[str]:
    """What stands behind `python -m`."""
    program, _, name = command.partition(" ")
    return ["seq2seq_memattn", name, *options] if program == "memattn" else [command, *options]


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
    averaged = next(words for words in found if words[0] == "memattn average_checkpoints")
    run_dir = averaged[1]
    training = next(words for words in found if run_dir in words)
    # Or there would be one checkpoint to average.
    assert any(option.startswith("--checkpoint_minutes=") for option in training)
    make_multi30k(tmp_path / "multi30k")
    for module, *options in found:
        if module in NOT_HERE or any("host0" in option for option in options):
            continue
        words = module_and_arguments(module, small_options(module, options))
        done = run_here(*words, folder=tmp_path)
        assert done.returncode == 0, (module, done.stderr.decode()[-2000:])
    fit_as_readme_says(tmp_path)
    assert len((tmp_path / "copies.txt").read_text().splitlines()) == 12
    assert len((tmp_path / "translations.txt").read_text().splitlines()) == 11


def fit_as_readme_says(folder: Path) -> None:
    """Runs the code that fits a model to prepared data, with a narrow model and for one epoch."""
    _, code = blocks("python")
    narrow = ", ".join(f"{name}=8" for name in ("embedding_dim", "encoder_units", "decoder_units"))
    code = code.replace("epochs=8", "epochs=1").replace('k_memory:32"', f'k_memory:4", {narrow}')
    names: dict[str, Any] = {}
    with contextlib.chdir(folder):
        exec(compile(code, "README.md", "exec"), names)
    (loss,) = names["model"].history.history["loss"]
    assert 0 < loss < 10


@pytest.mark.slow
def test_the_commands_that_start_processes_run(tmp_path: Path) -> None:
    modules = ("memattn copy_task", *START_PROCESSES)
    for module, *options in (words for words in commands() if words[0] in modules):
        words = module_and_arguments(module, small_options(module, options))
        done = subprocess.run(
            [sys.executable, "-m", *words],
            cwd=tmp_path,
            env={"PYTHONPATH": str(ROOT), "PATH": str(Path(sys.executable).parent)},
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, (module, done.stderr.decode()[-2000:])
