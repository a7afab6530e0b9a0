"""Reads the files of the web page from the package."""

import importlib.resources
import mimetypes
from dataclasses import dataclass

PAGE = "index.html"
# The machine's own table of types may lack some of these.
TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".webmanifest": "application/manifest+json",
}


@dataclass(frozen=True)
class PageFile:
    """A file of the page.

    Args:
        content: the bytes of the file.
        content_type: the Content-Type header.
    """

    content: bytes
    content_type: str


def read_page_file(name: str) -> PageFile | None:
    """Reads a file of the page; returns None if no file has the name."""
    folder = importlib.resources.files("seq2seq_memattn.serving.http") / "page"
    # The name must be in the listing of the folder, so it cannot be a path to another place.
    if not folder.is_dir() or name not in {one.name for one in folder.iterdir() if one.is_file()}:
        return None
    suffix = "." + name.rpartition(".")[2]
    guessed = mimetypes.guess_type(name)[0] or "application/octet-stream"
    return PageFile((folder / name).read_bytes(), TYPES.get(suffix, guessed))
