"""Reads code blocks and commands of the documents, and runs them at small size."""

import contextlib
import gzip
import io
import re
import shlex
from pathlib import Path
from typing import Any, NamedTuple

from seq2seq_memattn.presets.load import load_preset
from tests.running import ROOT, Done, run_here
from tests.texts import make_multi30k, pairs

README = ROOT / "README.md"
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.glob("*.md"))
BLOCK = re.compile(r"^```([^\s`]*)[^\n]*\n(.*?)^```$", re.DOTALL | re.MULTILINE)
# A line of code whose comment gives its output: a shape, True, or a path.
PRINTED = re.compile(r"^print\(.*\)  # (\(.*\)|True|[\w/]+/\w+)(?::.*)?$", re.MULTILINE)

NARROW = [
    "--num_updates=4",
    "--validate_every=2",
    "--embedding_dim=8",
    "--encoder_units=8",
    "--decoder_units=8",
    "--attention_units=8",
    "--batch_size=8",
    "--checkpoint_minutes=0",  # a checkpoint after each update
]
# Options added to a document's commands, so that they take seconds instead of minutes.
SMALLER = {
    "memattn copy_task": ["--num_train=60", "--num_valid=12"],
    "memattn multi30k": ["--source_dir=multi30k"],  # downloads are in test_download.py
    "memattn train": NARROW,
    "memattn launch_local": NARROW,  # for the command that it launches
    "memattn evaluate": ["--beam_size=2"],
    "memattn draw_alignment": ["--beam_size=2"],
    "memattn export": ["--beam_size=5"],
    "experiments.reproduce": ["--scale=tiny", "--rows=copy_20_none"],
}
START_PROCESSES = ("memattn launch_local", "experiments.reproduce")
ELSEWHERE = ("memattn serve",)  # runs until it is stopped; see test_serve.py


class Command(NamedTuple):
    """A command in a document.

    Fields:
        name: such as "memattn train" or "experiments.reproduce".
        options: its arguments.
        standard_input: the text that `echo` pipes into it.
    """

    name: str
    options: tuple[str, ...]
    standard_input: str = ""

    def is_for_a_cluster(self) -> bool:
        """Whether it names machines that do not exist."""
        return any("host0" in option for option in self.options)

    def module_and_arguments(self) -> list[str]:
        """The arguments of `python -m` that run it at small size."""
        options = [re.sub("vocab_size=.*", "vocab_size=400", option) for option in self.options]
        options += SMALLER.get(self.name, [])
        program, _, name = self.name.partition(" ")
        return ["seq2seq_memattn", name, *options] if program == "memattn" else [program, *options]


def blocks(language: str, text: str) -> list[str]:
    """The code blocks of a language; "" selects blocks that name none, which are commands."""
    return [code for of, code in BLOCK.findall(text) if of == language]


def commands(text: str) -> list[Command]:
    """The commands in code blocks, and commands of experiments within sentences."""
    lines = [line for block in blocks("", text) for line in _joined(block).splitlines()]
    lines += re.findall(r"`(python -m experiments[^`]+ --[^`]+)`", BLOCK.sub("", text))
    return [command for line in lines if (command := _command(line))]


def _joined(block: str) -> str:
    return re.sub(r"\\\n *", "", block)


def _command(line: str) -> Command | None:
    """The project's command in a line; None for `make`, `pip`, clients and variables."""
    words, standard_input = shlex.split(line), ""
    if "|" in words:
        pipe = words.index("|")
        assert words[0] == "echo"
        words, standard_input = words[pipe + 1 :], " ".join(words[1:pipe]) + "\n"
    if words[0] == "memattn":
        return Command(f"memattn {words[1]}", tuple(words[2:]), standard_input)
    if words[:2] == ["python", "-m"] and words[2].startswith("experiments."):
        return Command(words[2], tuple(words[3:]), standard_input)
    return None


def prepare_folder(folder: Path) -> None:
    """Writes the files that the documents use into a folder: text and Multi30k."""
    for name, count in (("train", 300), ("val", 10), ("talks", 40), ("talks_val", 8)):
        for language, lines in zip(("en", "de"), pairs(count, seed=count), strict=True):
            with gzip.open(folder / f"{name}.{language}.gz", "wt", encoding="utf-8") as stream:
                stream.writelines(f"{line}\n" for line in lines)
    make_multi30k(folder / "multi30k")
    # What `head` and `printf` write in the page about search.
    (folder / "sources.txt").write_text("\n".join([*pairs(2, seed=1)[0], ""]), encoding="utf-8")
    (folder / "prefixes.txt").write_text("Eine Gruppe\n\n", encoding="utf-8")


def run_command(command: Command, folder: Path) -> Done:
    """Runs a command at small size, and fails the test if the command fails."""
    module, *options = command.module_and_arguments()
    typed = command.standard_input.encode()
    done = run_here(module, *options, standard_input=typed, folder=folder)
    assert done.returncode == 0, (command, done.stderr.decode()[-2000:])
    return done


def run_commands(text: str, folder: Path, done: set[Command]) -> None:
    """Runs the commands of a document in order, except those that have run before.

    Args:
        text: the document.
        folder: the working directory.
        done: commands that have run; those that run now are added.
    """
    for command in commands(text):
        if command in done or command.is_for_a_cluster() or command.name in START_PROCESSES:
            continue
        if command.name not in ELSEWHERE:
            run_command(command, folder)
            done.add(command)


def run_code(text: str, path: str, folder: Path) -> dict[str, Any]:
    """Runs a document's Python, checks the output against its comments, and loads its TOML.

    Returns:
        The variables.
    """
    for number, block in enumerate(blocks("toml", text)):
        file = folder / f"configuration_{number}.toml"
        file.write_text(block, encoding="utf-8")
        load_preset(str(file))
    names: dict[str, Any] = {}
    for block in blocks("python", text):
        with contextlib.chdir(folder), contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile(_small(block), path, "exec"), names)
        for output in PRINTED.findall(block):
            assert output in printed.getvalue().splitlines(), (path, output)
    return names


def _small(code: str) -> str:
    """The code with a narrow model, trained for one epoch."""
    narrow = ", ".join(f"{name}=8" for name in ("embedding_dim", "encoder_units", "decoder_units"))
    return code.replace("epochs=8", "epochs=1").replace('k_memory:32"', f'k_memory:4", {narrow}')


def lines_outside_code(text: str) -> list[str]:
    """The lines of a document outside code blocks."""
    return BLOCK.sub("", text).splitlines()
