from pathlib import Path
from types import SimpleNamespace

import pytest

from experiments import machine
from experiments.machine import ProductRate, TanhRate
from seq2seq_memattn.compute.hardware import has_bfloat16_units


@pytest.fixture(autouse=True)
def half_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each measurement takes half a second."""
    clock = SimpleNamespace(perf_counter=iter(0.5 * i for i in range(100)).__next__)
    monkeypatch.setattr(machine, "time", clock)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_the_rate_of_products_is_that_of_all_their_operations(dtype: str) -> None:
    rate = ProductRate([(2, 3, 5), (7, 11, 13)], dtype, products=4)
    assert rate() == 4 * 2 * (2 * 3 * 5 + 7 * 11 * 13) / 0.5


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


def test_the_rate_of_tanh_is_that_of_all_its_values() -> None:
    assert TanhRate(count=256, repeats=2)() == 2 * 256 / 0.5
