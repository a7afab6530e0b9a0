from pathlib import Path

import pytest

from tests.serving.tiny_models import export_half_plus_two, export_reverser


@pytest.fixture(scope="session")
def reverser_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An export folder with version 1 of the reversing model; tests must not change it."""
    folder = tmp_path_factory.mktemp("exports") / "reverser"
    export_reverser(folder, 1, export={"attention": "k_memory:4", "n_best": 2})
    return folder


@pytest.fixture(scope="session")
def half_plus_two_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An export folder with version 123 of the number model; tests must not change it."""
    folder = tmp_path_factory.mktemp("exports") / "half_plus_two"
    export_half_plus_two(folder)
    return folder
