"""The code and the commands of the site's pages run at small size, and lines are short."""

import importlib
import json
import re
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest

from docs.extensions.commands import page
from experiments.reproduction.study import load_definition
from seq2seq_memattn.commands.shared import cli
from seq2seq_memattn.presets.load import PRESETS
from seq2seq_memattn.serving.export.options import INPUTS as SIGNATURES
from tests.documents import (
    DOCS,
    PAGES,
    README,
    START_PROCESSES,
    Command,
    blocks,
    commands,
    prepare_folder,
    run_code,
    run_commands,
)
from tests.running import ROOT

TEXTS = {page.stem: page.read_text(encoding="utf-8") for page in PAGES}
GUIDE = "migration"  # tests/addons runs its code, half of which needs TensorFlow Addons
WITH_CODE = [
    name
    for name, text in TEXTS.items()
    if name != GUIDE and (commands(text) or blocks("python", text))
]
STARTS_FROM = {
    "serving": "own_text",
    "teachers": "own_text",
}  # pages that need the run of another page
# All pages with commands: the site's, that of commands, and those of results and experiments.
ALL_TEXTS = {
    **TEXTS,
    "commands": page(),
    **{
        str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
        for folder in ("results", "experiments")
        for path in sorted((ROOT / folder).rglob("*.md"))
    },
}
# Pages without commands, whose code is quick.
LIGHT = ("how_it_works", "index", "new_attention")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, set[Command]]:
    """The folder in which the README's commands ran, as the pages assume, and these commands."""
    folder, done = tmp_path_factory.mktemp("reader"), set[Command]()
    prepare_folder(folder)
    run_commands(README.read_text(encoding="utf-8"), folder, done)
    return folder, done


def test_no_page_has_the_name_of_one_that_sphinx_makes() -> None:
    assert not {"search", "genindex", "py-modindex"} & set(TEXTS)


@pytest.mark.parametrize("name", [name for name in WITH_CODE if name not in LIGHT])
@pytest.mark.slow
def test_commands_and_code_run(name: str, folder: tuple[Path, set[Command]]) -> None:
    where, done = folder
    for each in (STARTS_FROM.get(name, name), name):
        run_commands(TEXTS[each], where, done)
    run_code(TEXTS[name], f"docs/{name}.md", where)


@pytest.mark.parametrize("name", LIGHT)
def test_code_runs(name: str, tmp_path: Path) -> None:
    assert not commands(TEXTS[name])
    run_code(TEXTS[name], f"docs/{name}.md", tmp_path)


def test_the_attention_of_the_page_about_new_ones_gives_padding_no_weight(tmp_path: Path) -> None:
    attention = run_code(TEXTS["new_attention"], "docs/new_attention.md", tmp_path)["decoder"]
    attention = attention.cell.attention
    mask = keras.ops.convert_to_tensor([[True, True, False], [False] * 3])
    memory = attention.prepare(keras.random.normal([2, 3, 6]), mask)
    scores, _ = attention.score(keras.random.normal([2, 1, 16]), memory)
    found = keras.ops.convert_to_numpy(scores)
    assert found[0, 0, :2].sum() == pytest.approx(1.0)
    assert (found[:, 0, 2] == 0.0).all() and (found[1] == 0.0).all()
    counted = keras.ops.convert_to_numpy(attention.positions_scored(scores, memory))
    assert counted.tolist() == [[2.0], [0.0]]


def test_xla_trains_the_attention_of_the_page_about_new_ones(tmp_path: Path) -> None:
    decoder = run_code(TEXTS["new_attention"], "docs/new_attention.md", tmp_path)["decoder"]
    inputs = [keras.Input((None, width)) for width in (4, 6)]
    model = keras.Model(inputs, decoder(*inputs))
    model.compile("sgd", "mse", jit_compile=True)
    arrays = [np.ones((2, *shape), np.float32) for shape in ((5, 4), (9, 6), (5, 22))]
    losses = model.fit(arrays[:2], arrays[2], epochs=2, verbose=0).history["loss"]
    assert losses[1] < losses[0]


@pytest.mark.slow
def test_commands_that_start_processes_run(tmp_path: Path) -> None:
    found = [command for name in WITH_CODE for command in commands(TEXTS[name])]
    needed = [command for command in found if command.name == "memattn copy_task"][:1]
    started = [command for command in found if command.name in START_PROCESSES]
    assert {command.name for command in started} == set(START_PROCESSES)
    for command in [*needed, *started]:
        done = subprocess.run(
            [sys.executable, "-m", *command.module_and_arguments()],
            cwd=tmp_path,
            env={"PYTHONPATH": str(ROOT), "PATH": str(Path(sys.executable).parent)},
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, (command, done.stderr.decode()[-2000:])


@pytest.mark.parametrize("name", [name for name, text in ALL_TEXTS.items() if commands(text)])
def test_options_of_commands_are_right(name: str) -> None:
    for command in commands(ALL_TEXTS[name]):
        program, _, part = command.name.partition(" ")
        module = f"seq2seq_memattn.commands.{part}" if program == "memattn" else program
        arguments = cli.flags_of(importlib.import_module(module)).parse(command.options)
        if part == "train":
            assert arguments.config in PRESETS
        if program == "experiments.reproduce":
            load_definition(*arguments.rest)


def test_the_options_that_correspond_to_others_exist() -> None:
    ours = re.findall(r"^\| `--(\w+)", TEXTS["from_other_toolkits"], re.MULTILINE)
    assert len(ours) > 30
    assert set(ours) <= set(re.findall(r"^`--(?:\[no\])?(\w+)`$", page(), re.MULTILINE))


def test_every_page_is_in_the_contents() -> None:
    trees = blocks("{toctree}", TEXTS["index"])
    listed = {line for tree in trees for line in tree.splitlines() if line and line[0] != ":"}
    assert listed == set(TEXTS) - {"index"}


def test_the_request_of_the_page_of_serving_names_a_signature_and_its_inputs() -> None:
    (block,) = blocks("json", TEXTS["serving"])
    request = json.loads(block)
    (instance,) = request["instances"]
    assert set(instance) == set(SIGNATURES[request["signature_name"]])
    named = {line.split("`")[1] for line in TEXTS["serving"].splitlines() if line[:3] == "| `"}
    assert set(SIGNATURES) <= named


def test_the_two_versions_of_the_drawing_differ_in_their_colours_alone() -> None:
    light, dark = (
        (DOCS / "images" / f"k_memory_{version}.svg").read_text(encoding="utf-8")
        for version in ("light", "dark")
    )
    colour = re.compile("#[0-9a-f]{6}")
    assert light != dark
    assert colour.sub("", light) == colour.sub("", dark)
