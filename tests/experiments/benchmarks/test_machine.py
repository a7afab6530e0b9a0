from types import SimpleNamespace

import pytest

from experiments.benchmarks import machine
from experiments.benchmarks.machine import ProductRate, TanhRate


@pytest.fixture(autouse=True)
def half_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each measurement takes half a second."""
    clock = SimpleNamespace(perf_counter=iter(0.5 * i for i in range(100)).__next__)
    monkeypatch.setattr(machine, "time", clock)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_the_rate_of_products_is_that_of_all_their_operations(dtype: str) -> None:
    rate = ProductRate([(2, 3, 5), (7, 11, 13)], dtype, products=4)
    assert rate() == 4 * 2 * (2 * 3 * 5 + 7 * 11 * 13) / 0.5


def test_the_rate_of_tanh_is_that_of_all_its_values() -> None:
    assert TanhRate(count=256, repeats=2)() == 2 * 256 / 0.5
