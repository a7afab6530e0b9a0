"""Reads the arrays that `record.py` stored, and runs code of the migration guide."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.documents import blocks
from tests.inputs import mask_of
from tests.running import ROOT

Arrays = dict[str, npt.NDArray[Any]]
GUIDE = (ROOT / "docs/migration.md").read_text(encoding="utf-8")


def recorded(file: str, part: str = "") -> Arrays:
    """The arrays of a file, or of one part of it; the names of a part lose their prefix."""
    with np.load(Path(__file__).parent / f"{file}.npz") as arrays:
        prefix = f"{part}." if part else ""
        return {
            name.removeprefix(prefix): arrays[name] for name in arrays if name.startswith(prefix)
        }


def source_mask() -> npt.NDArray[np.bool_]:
    """True on the real tokens of the sources that all files share."""
    arrays = recorded("attention")
    return mask_of(arrays["source_lengths"].tolist(), arrays["memory"].shape[1])


def run_guide(text: str, names: dict[str, Any], sizes: Sequence[tuple[str, str]] = ()) -> None:
    """Runs the code block of the migration guide that contains `text`.

    Args:
        text: a text that only this block contains.
        names: the variables that the code reads; those that it assigns are added.
        sizes: replacements to make in the code, (old, new) each.
    """
    (code,) = [block for block in blocks("python", GUIDE) if text in block]
    for old, new in sizes:
        assert old in code
        code = code.replace(old, new)
    exec(compile(code, "docs/migration.md", "exec"), names)


def from_guide(name: str) -> Any:
    """A function or a class that a code block of the migration guide defines."""
    names: dict[str, Any] = {}
    (kind,) = (each for each in ("def", "class") if f"\n{each} {name}(" in GUIDE)
    run_guide(f"{kind} {name}(", names)
    return names[name]
