"""Every test starts from the same seeds and leaves the global state as it found it."""

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # before the first import of TensorFlow

import keras
import pytest

from experiments import interruptions

SEED = 20170731

# A shell that starts the tests in its background ignores SIGINT, and so would all that they start.
signal.signal(signal.SIGINT, signal.default_int_handler)


def _global_state() -> dict[str, Any]:
    return {
        "dtype policy": keras.config.dtype_policy().name,
        "floatx": keras.config.floatx(),
        "epsilon": keras.config.epsilon(),
        "image_data_format": keras.config.image_data_format(),
        "directory": os.getcwd(),
    }


def _restore(state: dict[str, Any]) -> None:
    keras.config.set_floatx(state["floatx"])
    keras.config.set_epsilon(state["epsilon"])
    keras.config.set_dtype_policy(state["dtype policy"])
    keras.config.set_image_data_format(state["image_data_format"])
    os.chdir(state["directory"])


# The files that take longest come first, or one process would still be busy with them at the end.
LONG = ("tests/training/", "tests/experiments/", "tests/search/", "tests/test_conformance")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: not item.nodeid.startswith(LONG))


@pytest.fixture(autouse=True)
def seeded_and_isolated() -> Iterator[None]:
    """Seeds Python, NumPy and Keras; puts changed global state back, and fails the test for it."""
    before = _global_state()
    keras.utils.set_random_seed(SEED)
    yield
    after = _global_state()
    _restore(before)
    changed = [name for name in before if before[name] != after[name]]
    if changed:
        pytest.fail(f"changed and did not restore: {', '.join(changed)} (see `monkeypatch`)")


@pytest.fixture
def small_disk(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """A file system of the size that is the fixture's parameter: see `small_disk_of`."""
    disk = tmp_path / "disk"
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(interruptions.small_disk(disk, request.param))
        except OSError as error:
            pytest.skip(str(error))
        yield disk
