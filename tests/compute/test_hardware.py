from pathlib import Path
from types import SimpleNamespace

import jax
import keras
import pytest
import tensorflow as tf

from seq2seq_memattn.compute.hardware import (
    hardware,
    has_bfloat16_units,
    has_int8_units,
    num_cores,
    processor,
)


@pytest.mark.parametrize(
    ("cpuinfo", "expected"),
    [
        ("processor\t: 0\nflags\t\t: fpu avx2 avx512_bf16\n", True),
        ("flags\t\t: fpu avx512f amx_tile amx_bf16\n", True),
        ("processor\t: 0\nFeatures\t: fp asimd bf16 i8mm\n", True),
        ("model name\t: bf16\nflags\t\t: fpu avx2 avx512f\n", False),
        ("processor\t: 0\n", None),
    ],
)
def test_units_for_bfloat16_are_among_the_features_that_linux_lists(
    tmp_path: Path, cpuinfo: str, expected: bool | None
) -> None:
    (tmp_path / "cpuinfo").write_text(cpuinfo)
    assert has_bfloat16_units(tmp_path / "cpuinfo") is expected
    assert has_bfloat16_units(tmp_path / "missing") is None


@pytest.mark.parametrize(
    ("flags", "expected"), [("avx2 avx512_vnni", True), ("avx_vnni", True), ("avx512f", False)]
)
def test_units_for_int8_are_among_the_features_that_linux_lists(
    tmp_path: Path, flags: str, expected: bool
) -> None:
    (tmp_path / "cpuinfo").write_text(f"flags\t\t: fpu {flags}\n")
    assert has_int8_units(tmp_path / "cpuinfo") is expected
    assert not has_int8_units(tmp_path / "missing")


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ("fpu avx avx2 avx512f avx512_vnni", ", AVX-512 with VNNI"),
        ("fpu avx avx2", ", AVX2"),
        ("fpu avx", ""),
    ],
)
def test_a_processor_is_named_with_its_vector_instructions(
    tmp_path: Path, flags: str, expected: str
) -> None:
    core = f"processor\t: 0\nmodel name\t: Some CPU\nflags\t\t: {flags}\n"
    (tmp_path / "cpuinfo").write_text(core * 2)
    assert processor(tmp_path / "cpuinfo") == f"Some CPU, {num_cores()} cores{expected}"
    assert processor(tmp_path / "missing").endswith(f", {num_cores()} cores")


def test_results_name_the_gpu_that_their_backend_computes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tf.config, "get_visible_devices", lambda kind: [])
    assert hardware() == processor()
    device = SimpleNamespace(name="/physical_device:GPU:0")
    details = {"device_name": "Some GPU"}
    monkeypatch.setattr(tf.config, "get_visible_devices", lambda kind: [device])
    monkeypatch.setattr(tf.config.experimental, "get_device_details", lambda device: details)
    assert hardware() == f"Some GPU; {processor()}"
    devices = [SimpleNamespace(platform="gpu", device_kind="Another GPU")]
    monkeypatch.setattr(keras.backend, "backend", lambda: "jax")
    monkeypatch.setattr(jax, "devices", lambda: devices)
    assert hardware() == f"Another GPU; {processor()}"
