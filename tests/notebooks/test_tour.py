"""The notebook has its outputs, uses public names only, and runs at small size."""

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

NOTEBOOK = ROOT / "notebooks" / "tour.ipynb"
TEXT = NOTEBOOK.read_text(encoding="utf-8")
MOST_BYTES = 5_000_000
NUM_FIGURES = 3
PACKAGE = "seq2seq_memattn"
SMALL = {
    "NUM_DATES": "200",
    "UNITS": "8",
    "DATE_EPOCHS": "2",
    "MAX_LENGTH": "5",
    "NUM_COPIES": "60",
    "COPY_EPOCHS": '{"K=4": 1, "Att": 1}',
    "TIMED_LENGTHS": "[3, 5]",
    "TIMED_BATCH": "4",
}


def read() -> Any:
    return nbformat.read(NOTEBOOK, as_version=4)


def code_cells(notebook: Any) -> list[Any]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def shrink(notebook: Any) -> None:
    """Makes the notebook's constants small. Each is set by one line."""
    for name, value in SMALL.items():
        setting = re.compile(rf"^{name} = .*$", re.MULTILINE)
        (cell,) = [cell for cell in code_cells(notebook) if setting.search(cell.source)]
        cell.source, number = setting.subn(f"{name} = {value}", cell.source)
        assert number == 1, name


def program(notebook: Any) -> ast.Module:
    """All code as one program, without the lines that IPython alone understands."""
    source = "\n".join(cell.source for cell in code_cells(notebook))
    return ast.parse(re.sub(r"^( *)%.*$", r"\1pass", source, flags=re.MULTILINE))


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
    # Neither errors nor warnings. TensorFlow writes some warnings to standard output.
    kinds = {output.get("name", output.output_type) for output in outputs(notebook)}
    assert kinds <= {"stdout", "display_data", "execute_result"}
    assert not [one for one in outputs(notebook) if "WARNING" in one.get("text", "")]


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
    text = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    documented = set(re.findall(r":: (?:[\w.]+\.)?(\w+)$", text, re.MULTILINE))
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
            assert names <= documented
    attributes = [node for node in nodes if isinstance(node, ast.Attribute)]
    names = {node.attr for node in attributes}
    assert not [name for name in names if name[0] == "_" and name != "__name__"]
    modules = {"data", "plots", "vocabulary"}
    of_modules = {node.attr for node in attributes if ast.unparse(node.value) in modules}
    assert "pad_batch" in of_modules
    assert of_modules <= documented


def test_a_small_run_changes_what_the_notebook_sets() -> None:
    notebook = read()
    shrink(notebook)
    sources = "\n".join(cell.source for cell in code_cells(notebook))
    assert all(f"\n{name} = {value}" in sources for name, value in SMALL.items())


@pytest.mark.slow
def test_it_runs_from_its_top(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    notebook = read()
    shrink(notebook)
    where = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(notebook, timeout=300, resources=where).execute()
    assert num_figures(notebook) == NUM_FIGURES
    texts = "".join(output.get("text", "") for output in outputs(notebook))
    assert texts.count("layer and equations agree") == 2
    assert texts.count("exactly right: ") == 8  # after each epoch of each model
    assert texts.count("03/04/2021 ") == 1  # one of the reader's own dates
    assert "loaded model writes the same: True" in texts
