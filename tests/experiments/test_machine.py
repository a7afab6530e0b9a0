import pytest

from experiments.machine import ProductRate, TanhRate


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_the_rate_of_products_is_that_of_all_their_operations(dtype: str) -> None:
    small, large = (
        max(rate() for _ in range(3))
        for rate in (
            ProductRate([(2, 2, 2)], dtype, products=4),
            ProductRate([(256, 256, 256), (256, 256, 512)], dtype, products=4),
        )
    )
    assert 0 < small < large  # small ones are overhead for the most part


def test_the_rate_of_tanh_is_positive() -> None:
    assert TanhRate(count=256, repeats=2)() > 0
