"""Which modules of the package may import which, and which may read flags."""

import ast
import graphlib
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "seq2seq_memattn"
MOST_ROOT_MODULES = 10

# From the bottom up: the modules in a line import only from their own line and the lines above it.
LAYERS = (
    ("_version", "checks", "notes", "packages", "compute"),
    ("config", "vocabulary"),
    ("text",),
    ("data", "metrics", "losses"),
    ("loops",),
    ("attention",),
    ("layers", "plots"),
    ("model",),
    ("search",),
    ("runs",),
    ("training", "preparation", "presets"),
    ("serving",),
    ("commands",),
    ("__main__",),
)


def _modules() -> dict[str, Path]:
    """All modules of the package by their dotted names."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = _modules()


def _imports(path: Path) -> set[str]:
    """The modules of the package that a file imports, anywhere in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}: line {node.lineno} imports relatively"
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                found.add(full if full in MODULES else str(node.module))
    return found & set(MODULES)


def test_no_module_imports_one_that_imports_it() -> None:
    graph = {name: _imports(path) - {name, "seq2seq_memattn"} for name, path in MODULES.items()}
    list(graphlib.TopologicalSorter(graph).static_order())  # raises CycleError


def test_the_layers_import_only_from_below() -> None:
    place = {name: number for number, names in enumerate(LAYERS) for name in names}
    wrong = defaultdict(set)
    for name, path in MODULES.items():
        if name == "seq2seq_memattn":
            continue
        layer = name.split(".")[1]
        for other in _imports(path) - {"seq2seq_memattn"}:
            if place[other.split(".")[1]] > place[layer]:
                wrong[name].add(other)
    assert not wrong


def test_every_part_of_the_package_has_its_layer() -> None:
    parts = {name.split(".")[1] for name in MODULES if "." in name}
    assert parts == {name for names in LAYERS for name in names}


def test_few_modules_lie_in_the_root() -> None:
    assert len(list(PACKAGE.glob("*.py"))) <= MOST_ROOT_MODULES


@pytest.mark.parametrize("name", sorted(set(MODULES)))
def test_only_commands_know_flags(name: str) -> None:
    if not name.startswith(("seq2seq_memattn.commands", "seq2seq_memattn.__main__")):
        imported = {
            alias.name if isinstance(node, ast.Import) else str(node.module)
            for node in ast.walk(ast.parse(MODULES[name].read_text(encoding="utf-8")))
            if isinstance(node, ast.Import | ast.ImportFrom)
            for alias in node.names
        }
        above = {"absl", "argparse", "data_prep", "experiments", "tests"}
        assert not {one for one in imported if one.split(".")[0] in above}
