"""Rewrites links from pages to files of the repository that are not part of the site.

In the repository, all links are relative. On the site, links to pages in docs/ and results/ lead to
pages of the site, others to the repository. The changelog page shows CHANGELOG.md.
"""

import posixpath
import re
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
DOCS = "docs"
RESULTS = "results"  # these pages are copied, see results.py
CHANGELOG = "changelog"
CODE = re.compile(r"(^```.*?^```$)", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"(?<!!)(\[[^\]]*\])\(([^)\s]+)\)")


def repository() -> str:
    """The address of the repository, from pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    address: str = project["urls"]["Repository"]
    return address


def on_site(target: str, folder: str) -> str:
    """The target that a link needs on the site.

    Args:
        target: the link's target in the file.
        folder: folder of that file, relative to the repository.
    """
    if re.match(r"[a-z]+:|#", target):
        return target
    path, mark, anchor = target.partition("#")
    path = posixpath.normpath(posixpath.join(folder, path))
    if path.startswith(f"{DOCS}/") or (path.startswith(f"{RESULTS}/") and path.endswith(".md")):
        return posixpath.relpath(_place(path), _place(folder)) + mark + anchor
    kind = "tree" if (ROOT / path).is_dir() else "blob"
    return f"{repository()}/{kind}/main/{path}{mark}{anchor}"


def _place(path: str) -> str:
    """Where a path of the repository lies on the site; pages of docs/ lie at its root."""
    return posixpath.relpath(path, DOCS) if path.split("/")[0] == DOCS else path


def rewritten(text: str, folder: str) -> str:
    """A Markdown page with its links rewritten for the site; code is unchanged."""
    parts = CODE.split(text)
    for number in range(0, len(parts), 2):
        parts[number] = LINK.sub(lambda m: f"{m[1]}({on_site(m[2], folder)})", parts[number])
    return "".join(parts)


def setup(app: Any) -> dict[str, bool]:
    """Connects this extension to Sphinx."""

    def read(app: Any, document: str, source: list[str]) -> None:
        del app
        if document == CHANGELOG:
            source[0] = rewritten((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), ".")
        else:
            source[0] = rewritten(source[0], posixpath.dirname(document) or DOCS)

    app.connect("env-get-outdated", lambda *_: [CHANGELOG])  # shows a file of another folder
    app.connect("source-read", read)
    return {"parallel_read_safe": True}
