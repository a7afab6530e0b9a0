"""Copies the pages of results and their pictures into docs/, where Sphinx looks for pages."""

import shutil
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parents[2] / "results"


def copy_pages(app: Any) -> None:
    """Replaces the folder of copies, which git ignores."""
    copies = Path(app.srcdir) / RESULTS.name
    shutil.rmtree(copies, ignore_errors=True)
    for path in (*RESULTS.glob("*.md"), *RESULTS.glob("*/*.png")):
        copy = copies / path.relative_to(RESULTS)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, copy)  # keeps the modification time, so unchanged pages are not rebuilt


def setup(app: Any) -> dict[str, bool]:
    """Connects this extension to Sphinx."""
    app.connect("builder-inited", copy_pages)
    return {"parallel_read_safe": True}
