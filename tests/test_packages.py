import importlib.util
import os

import pytest

from seq2seq_memattn import packages


def without(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """Makes these packages appear not to be installed."""
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name in names else find(name)
    )


def test_an_import_that_finds_no_package_says_which_extra_brings_it() -> None:
    expected = r"pip install 'seq2seq_memattn\[text\]'"
    with pytest.raises(ModuleNotFoundError, match=expected), packages.needed():
        raise ModuleNotFoundError("No module named 'sacremoses.x'", name="sacremoses.x")


def test_another_import_that_fails_keeps_its_error() -> None:
    expected = "^No module named 'none_such'$"
    with pytest.raises(ModuleNotFoundError, match=expected), packages.needed():
        import none_such  # noqa: F401


def test_without_a_backend_both_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, "tensorflow", "jax")
    assert "[tensorflow]' or 'seq2seq_memattn[jax]'" in packages.what_to_install("tensorflow")


def test_what_needs_tensorflow_beside_jax_names_it_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, "tensorflow")
    found = packages.what_to_install("tensorflow.python")
    assert found == "tensorflow is not installed: pip install 'seq2seq_memattn[tensorflow]'"


@pytest.mark.parametrize(
    ("missing", "chosen", "expected"),
    [
        (["tensorflow"], None, "jax"),
        (["tensorflow"], "torch", "torch"),
        (["jax"], None, None),
        ([], None, None),
        (["tensorflow", "jax"], None, None),
    ],
)
def test_commands_compute_with_jax_where_tensorflow_is_missing(
    missing: list[str],
    chosen: str | None,
    expected: str | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    without(monkeypatch, *missing)
    monkeypatch.setenv("KERAS_BACKEND", chosen or "")
    if chosen is None:
        monkeypatch.delenv("KERAS_BACKEND")
    packages.choose_backend()
    assert os.environ.get("KERAS_BACKEND") == expected
    monkeypatch.delenv("KERAS_BACKEND", raising=False)
