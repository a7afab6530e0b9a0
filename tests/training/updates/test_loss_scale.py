from seq2seq_memattn.training.updates import loss_scale
from seq2seq_memattn.training.updates.loss_scale import LossScale


def test_only_float16_is_scaled() -> None:
    for precision in ("float32", "bfloat16_products", "mixed_bfloat16", "float64"):
        scale = LossScale.first(precision)
        assert scale.value == 1.0
        assert not scale.may_fall
        assert scale.after(False) == scale.after(True) == scale
    assert LossScale.first("mixed_float16").value == loss_scale.FIRST


def test_it_falls_after_an_overflow_down_to_the_smallest() -> None:
    scale, values = LossScale.first("mixed_float16"), []
    while scale.may_fall:
        scale = scale.after(False)
        values.append(scale.value)
    assert values[:2] == [loss_scale.FIRST / 2, loss_scale.FIRST / 4]
    assert values[-1] == loss_scale.SMALLEST
    assert scale.after(False) == scale


def test_it_rises_after_many_updates_up_to_the_largest() -> None:
    scale = LossScale.first("mixed_float16")
    for _ in range(loss_scale.PATIENCE - 1):
        scale = scale.after(True)
    assert scale.value == loss_scale.FIRST
    assert scale.after(True).value == 2 * loss_scale.FIRST
    # An overflow restarts the count.
    again = scale.after(False)
    assert again.applied == 0
    assert again.after(True).value == loss_scale.FIRST / 2
    largest = LossScale(loss_scale.LARGEST, loss_scale.PATIENCE - 1, True)
    assert largest.after(True).value == loss_scale.LARGEST
