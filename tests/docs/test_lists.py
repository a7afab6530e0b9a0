"""The lists of commands and of public names have the first lines of the docstrings."""

import importlib
import inspect
from types import ModuleType
from typing import Any

import pytest

import seq2seq_memattn
from seq2seq_memattn.__main__ import command_names
from tests.documents import DOCS
from tests.running import ROOT

NAMES = [name for name in seq2seq_memattn.__all__ if not name.startswith("__")]


def row_of(name: str, named: Any) -> str:
    """A name, linked to its file, with the first line of its docstring."""
    module = named if isinstance(named, ModuleType) else importlib.import_module(named.__module__)
    path = (module.__file__ or "").removeprefix(f"{ROOT}/")
    about = inspect.getdoc(named) or ""
    return f"| [`{name}`](../{path}) | {about.splitlines()[0]} |"


@pytest.mark.parametrize("name", command_names())
def test_the_page_of_commands_lists_each(name: str) -> None:
    command = importlib.import_module(f"seq2seq_memattn.commands.{name}")
    assert row_of(name, command) in (DOCS / "commands.md").read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("name", NAMES)
def test_the_page_of_the_api_lists_each(name: str) -> None:
    named = getattr(seq2seq_memattn, name)
    assert row_of(name, named) in (DOCS / "api.md").read_text(encoding="utf-8").splitlines()
