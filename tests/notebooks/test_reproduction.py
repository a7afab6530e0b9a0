"""The notebook runs from top to bottom at a size that takes minutes."""

import ast
import re
from pathlib import Path
from typing import Any

import nbclient
import nbformat
import pytest

from tests.running import ROOT
from tests.texts import make_multi30k

NOTEBOOK = ROOT / "notebooks" / "reproduction.ipynb"
TINY = """
MAX_LENGTH = 3
COPY_UPDATES = 2
LENGTHS = "3,5"
TIMED_SENTENCES = 4
VOCAB_SIZE = 400
TEXT_UPDATES = 2
TEXT_SOURCE = ["--source_dir=multi30k"]
"""


def code_cells(notebook: Any) -> list[Any]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def settings(notebook: Any) -> Any:
    (found,) = [cell for cell in notebook.cells if "parameters" in cell.metadata.get("tags", ())]
    return found


def assigned(source: str) -> list[str]:
    statements = ast.parse(source).body
    return [target.id for one in statements for target in one.targets]  # type: ignore[attr-defined]


def images(notebook: Any) -> int:
    outputs = [output for cell in code_cells(notebook) for output in cell.outputs]
    return sum("image/png" in output.get("data", {}) for output in outputs)


def test_it_names_no_path_of_a_machine() -> None:
    assert not re.findall(r"(?:/tmp|/root|/home|/work)/", NOTEBOOK.read_text(encoding="utf-8"))


def test_a_trial_sets_what_the_notebook_sets() -> None:
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    assert assigned(TINY) == assigned(settings(notebook).source)


@pytest.mark.slow
def test_it_runs_from_its_top(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    make_multi30k(tmp_path / "multi30k")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    settings(notebook).source = TINY
    where = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(notebook, timeout=900, resources=where).execute()
    assert images(notebook) == 5
    texts = [output.get("text", "") for cell in code_cells(notebook) for output in cell.outputs]
    assert any(text.startswith("BLEU ") for text in texts)
    assert sum(text.startswith("A man rides a bike down the street.") for text in texts) == 1
