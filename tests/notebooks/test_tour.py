"""The notebook: it is stored with its outputs, uses public names alone, and runs, small."""

import ast
import re
import tomllib
from pathlib import Path
from typing import Any

import nbclient
import nbformat
import pytest

import seq2seq_memattn
from tests.running import ROOT
from tests.texts import pairs, write_lines

NOTEBOOK = ROOT / "notebooks" / "tour.ipynb"
TEXT = NOTEBOOK.read_text(encoding="utf-8")
MOST_BYTES = 5_000_000
NUM_FIGURES = 4
PACKAGE = "seq2seq_memattn"
TINY = """
UNITS = 8
MAX_LENGTH = 5
NUM_COPIES = 20
COPY_EPOCHS = {"K=32": 2, "Att": 1, "No Att": 1, "K=4": 1}
TIMED_LENGTHS = [3, 5]
TIMED_UNITS = 8
SOURCE = ""
TARGET = ""
NUM_MADE = 60
TEXT_EPOCHS = 2
"""


def read() -> Any:
    return nbformat.read(NOTEBOOK, as_version=4)


def code_cells(notebook: Any) -> list[Any]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def settings(notebook: Any) -> Any:
    (found,) = [cell for cell in notebook.cells if "parameters" in cell.metadata.get("tags", ())]
    return found


def program(notebook: Any) -> ast.Module:
    """All code as one program, without the lines that IPython alone understands."""
    source = "\n".join(cell.source for cell in code_cells(notebook))
    return ast.parse(re.sub(r"^( *)%.*$", r"\1pass", source, flags=re.MULTILINE))


def assigned(source: str) -> list[str]:
    statements = ast.parse(source).body
    return [target.id for one in statements for target in one.targets]  # type: ignore[attr-defined]


def outputs(notebook: Any) -> list[Any]:
    return [output for cell in code_cells(notebook) for output in cell.outputs]


def num_figures(notebook: Any) -> int:
    return sum("image/png" in output.get("data", {}) for output in outputs(notebook))


def test_it_is_stored_with_the_outputs_of_one_run() -> None:
    notebook = read()
    cells = code_cells(notebook)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert num_figures(notebook) == NUM_FIGURES
    assert len(NOTEBOOK.read_bytes()) < MOST_BYTES
    # Neither errors nor warnings: those would be on standard error.
    kinds = {output.get("name", output.output_type) for output in outputs(notebook)}
    assert kinds <= {"stdout", "display_data", "execute_result"}


def test_it_names_no_path_of_a_machine() -> None:
    assert not re.findall(r"(?:/tmp|/root|/home|/work)/", TEXT)


def test_its_badge_and_its_first_cell_lead_to_the_repository() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    address = project["urls"]["Repository"]
    notebook = read()
    name = NOTEBOOK.relative_to(ROOT).as_posix()
    path = address.removeprefix("https://github.com/")
    badge = f"https://colab.research.google.com/github/{path}/blob/main/{name}"
    assert f"]({badge})" in notebook.cells[0].source
    first = code_cells(notebook)[0].source
    assert f'REPOSITORY = "{address}"' in first
    (extras,) = re.findall(rf"{PACKAGE}\[([\w,]+)\] @ git\+{{REPOSITORY}}", first)
    assert set(extras.split(",")) <= set(project["optional-dependencies"])


def test_it_uses_public_names_alone() -> None:
    documented = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    nodes = list(ast.walk(program(read())))
    imports = [node for node in nodes if isinstance(node, ast.ImportFrom)]
    modules = {node.module for node in imports}
    modules |= {one.name for node in nodes if isinstance(node, ast.Import) for one in node.names}
    tops = {str(module).partition(".")[0] for module in modules}
    assert PACKAGE in tops
    assert not tops & {"data_prep", "experiments", "tests"}
    for node in imports:
        names = {one.name for one in node.names}
        if node.module == PACKAGE:
            assert names <= set(seq2seq_memattn.__all__)
        elif str(node.module).startswith(PACKAGE):
            assert f":: {node.module}\n" in documented, node.module
    attributes = [node for node in nodes if isinstance(node, ast.Attribute)]
    assert not [node.attr for node in attributes if node.attr.startswith("_")]
    of_modules = {node.attr for node in attributes if ast.unparse(node.value) in ("data", "plots")}
    assert "pad_batch" in of_modules
    assert of_modules <= set(re.findall(r":: (?:[\w.]+\.)?(\w+)$", documented, re.MULTILINE))


def test_a_trial_sets_what_the_notebook_sets() -> None:
    assert assigned(TINY) == assigned(settings(read()).source)


@pytest.mark.slow
@pytest.mark.parametrize("has_files", [False, True])
def test_it_runs_from_its_top(
    has_files: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    notebook = read()
    settings(notebook).source = TINY
    if has_files:
        for name, lines in zip(("SOURCE", "TARGET"), pairs(60, seed=1), strict=True):
            write_lines(tmp_path / name, lines)
            settings(notebook).source += f'{name} = "{name}"\n'
    where = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(notebook, timeout=300, resources=where).execute()
    assert num_figures(notebook) == NUM_FIGURES
    texts = "".join(output.get("text", "") for output in outputs(notebook))
    assert texts.count("layer and equations agree") == 2
    assert texts.count("bleu: ") >= 5  # after each epoch of each row
    assert texts.count("the old woman must buy a small horse") == 1
