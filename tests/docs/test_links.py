"""Links of the documents and of the notebook have targets; no network is needed."""

import re
import tomllib
from pathlib import Path

import pytest

from tests.documents import BLOCK
from tests.running import ROOT, project_files

LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)|(?:src|srcset)=\"([^\"]+)\"")
DOCUMENTS = [
    name for name in project_files() if name.endswith(".md") and not name.startswith("tests/")
]


def anchors(path: Path) -> set[str]:
    """The anchors of a document's headings on GitHub and on the site."""
    text = BLOCK.sub("", path.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    words = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {word.replace(" ", "-") for word in words}


def test_the_documents_are_found() -> None:
    assert {"README.md", "docs/index.md", "CHANGELOG.md", "results/README.md"} <= set(DOCUMENTS)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_relative_links_lead_somewhere(name: str) -> None:
    text = BLOCK.sub("", (ROOT / name).read_text(encoding="utf-8"))
    for link in LINK.findall(text):
        target = link[0] or link[1]
        if re.match(r"[a-z]+:", target):
            continue
        file, _, anchor = target.partition("#")
        path = (ROOT / name).parent / file if file else ROOT / name
        assert path.exists(), f"{name}: {target}"
        if anchor and path.suffix == ".md":
            assert anchor in anchors(path), f"{name}: {target}"


def test_the_notebooks_links_lead_to_files_and_pages_of_the_repository() -> None:
    text = (ROOT / "notebooks" / "tour.ipynb").read_text(encoding="utf-8")
    urls = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]
    files = re.findall(re.escape(urls["Repository"]) + r"/blob/main/([^)#\s\\]+)", text)
    files += re.findall(
        r"colab\.research\.google\.com/github/[^/]+/[^/]+/blob/main/([^)\s]+)", text
    )
    pages = re.findall(re.escape(urls["Documentation"].rstrip("/")) + r"/(\w+)\.html", text)
    assert len(files) >= 5 and len(pages) >= 3
    assert [name for name in files if not (ROOT / name).exists()] == []
    assert [name for name in pages if not (ROOT / "docs" / f"{name}.md").exists()] == []
