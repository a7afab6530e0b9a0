"""Fixtures: every test starts from the same seeds and must restore the global state."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # before the first import of TensorFlow
os.environ["KERAS_BACKEND"] = "tensorflow"  # tests of JAX set it in processes of their own
# Commands hide GPUs or expect a number of them, which works only before TensorFlow has found them.
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import keras
import pytest
from tensorflow.python.framework import ops as tf_ops

from tests import disks
from tests.running import jobs_here, run_here

SEED = 20170731

# In a shell's background, the tests and all processes that they start would ignore SIGINT.
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


# The slowest files come first, so that no process is still busy with them when others are done.
LONG = ("tests/training/", "tests/experiments/", "tests/search/", "tests/test_conformance")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: not item.nodeid.startswith(LONG))


@pytest.fixture(autouse=True)
def graphs_are_freed() -> Iterator[None]:
    """Deletes custom gradients of graphs; otherwise thousands of tests would use up the memory.

    `tf.custom_gradient` registers a function for each call in a graph. The function is never
    unregistered, and it keeps the graph alive.
    """
    registry = tf_ops.gradient_registry._registry
    before = set(registry)
    yield
    for name in set(registry) - before:
        del registry[name]


@pytest.fixture(autouse=True)
def seeded_and_isolated() -> Iterator[None]:
    """Seeds Python, NumPy and Keras. Fails a test that changes global state, and restores it."""
    before = _global_state()
    keras.utils.set_random_seed(SEED)
    yield
    after = _global_state()
    _restore(before)
    changed = [name for name in before if before[name] != after[name]]
    if changed:
        pytest.fail(f"changed and did not restore: {', '.join(changed)} (see `monkeypatch`)")


@pytest.fixture
def right_to_mount() -> None:
    """For tests that mount: without the right to mount, they run in a user namespace."""


@pytest.fixture
def small_disk(
    right_to_mount: None, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[Path]:
    """A small file system; see `small_disk_of` for the fixture's parameter."""
    size, is_for_one_file = request.param
    disk = tmp_path / "disk"
    if disks.may_mount():
        with disks.small_disk(disk, size):
            yield disk
    elif is_for_one_file and not disks.has_namespaces():
        disk.mkdir()
        with disks.small_files(size):
            yield disk
    else:
        yield disk  # the test mounts the disk in its namespace


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Runs tests that mount file systems in a namespace if needed; True if it did so."""
    if "right_to_mount" not in pyfuncitem.fixturenames or disks.may_mount():
        return None
    if disks.has_namespaces():
        disks.run_where_it_may_mount(pyfuncitem.nodeid)
        return True
    disk = pyfuncitem.funcargs.get("small_disk")
    if disk is None or not disk.exists():
        leave_out = pytest.fail if os.environ.get("CI") else pytest.skip
        leave_out("expected the right to mount a file system, or to make a user namespace")
    return None


TINY = [
    "--embedding_dim=8",
    "--encoder_units=8",
    "--decoder_units=8",
    "--batch_size=16",
    "--num_updates=4",
    "--validate_every=2",
    "--valid_examples=8",
    "--beam_size=2",
    "--log_every=1",
    "--max_source_length=7",
    "--position_encoding=mean_one",
]


@pytest.fixture(scope="session")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory and a trained run; tests must not change them."""
    folder = tmp_path_factory.mktemp("work")
    made = run_here(
        "data_prep.copy_task",
        "--max_length=6",
        "--num_train=100",
        "--num_valid=20",
        f"--output_dir={folder / 'data'}",
    )
    assert made.returncode == 0, made.stderr
    trained = run_here(
        "experiments.train",
        "--config=copy_20_k4",
        f"--data_dir={folder / 'data'}",
        f"--run_dir={folder / 'run'}",
        *TINY,
    )
    assert trained.returncode == 0, trained.stderr
    result = json.loads(trained.stdout.splitlines()[-1])
    assert result["update"] == 4 and result["reason"] == "updates"
    return folder


@pytest.fixture
def in_this_process() -> Iterator[None]:
    """Commands that `reproduce` and other commands start run in this process."""
    with jobs_here():
        yield
