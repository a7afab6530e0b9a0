"""The layout of an export folder: `EXPORT_DIR/VERSION/...`."""

import re
from pathlib import Path

SAVED_MODEL = "saved_model.pb"
CARD = "model_card.md"
EXTRA = "assets.extra"  # TensorFlow Serving's folder for files beside the graph
EXPORT = f"{EXTRA}/export.json"
WARMUP_REQUESTS = f"{EXTRA}/tf_serving_warmup_requests"

VERSION_NAME = re.compile("0|[1-9][0-9]{0,17}")  # fits int64; no leading zeros


def version_folders(folder: Path) -> dict[int, Path]:
    """All entries of a folder that are named like a version, by number.

    Raises:
        OSError: if the folder does not exist.
    """
    return {int(one.name): one for one in folder.iterdir() if VERSION_NAME.fullmatch(one.name)}


def find_versions(folder: Path) -> dict[int, Path]:
    """The versions in a folder that have a graph or cannot be read, by number.

    Raises:
        OSError: if the folder does not exist.
    """
    found = version_folders(folder)
    return {version: one for version, one in found.items() if _may_have_graph(one)}


def num_bytes(folder: Path) -> int:
    """The size of all files in a folder of a version.

    Raises:
        OSError: if the folder does not exist or cannot be read.
    """
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def _may_have_graph(folder: Path) -> bool:
    """Whether a folder has a graph, or cannot be read."""
    try:
        return (folder / SAVED_MODEL).is_file()
    except OSError:
        return True
