"""What is where in a folder of exported models: `EXPORT_DIR/VERSION/...`."""

import re
from pathlib import Path

SAVED_MODEL = "saved_model.pb"
CARD = "model_card.md"
EXTRA = "assets.extra"  # where TensorFlow Serving looks for what is beside the graph
EXPORT = f"{EXTRA}/export.json"
WARMUP_REQUESTS = f"{EXTRA}/tf_serving_warmup_requests"

VERSION_NAME = re.compile("0|[1-9][0-9]{0,17}")  # what an int64 holds, written in one way


def version_folders(folder: Path) -> dict[int, Path]:
    """Whatever is named like a version, by its number.

    Raises:
        OSError: if there is no such folder.
    """
    return {int(one.name): one for one in folder.iterdir() if VERSION_NAME.fullmatch(one.name)}


def find_versions(folder: Path) -> dict[int, Path]:
    """The versions that have a graph, by their numbers.

    Raises:
        OSError: if there is no such folder.
    """
    found = version_folders(folder)
    return {version: one for version, one in found.items() if (one / SAVED_MODEL).is_file()}
