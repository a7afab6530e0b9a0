"""Random numbers that are functions of a key and a counter: the same on every backend."""

from typing import Any

from keras import ops

Words = tuple[Any, Any]

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_GROUPS = 5  # of four rounds each
_PARITY = 0x1BD11BDA
UNIFORM_BITS = 24  # random bits per number: the precision of a float32


def uniform(key: Words, counter: Words) -> Any:
    """Random numbers in [0, 1): float32, of the broadcast shape.

    The backends' own random numbers depend on the shape of the batch and on the compiler.

    Args:
        key, counter: two words each, see `threefry`.
    """
    bits = ops.right_shift(threefry(key, counter)[0], _word(32 - UNIFORM_BITS))
    return ops.cast(bits, "float32") / 2.0**UNIFORM_BITS


def threefry(key: Words, counter: Words) -> Words:
    """Two pseudo-random words for a key and a counter.

    Source: Salmon et al. (2011), "Parallel random numbers: as easy as 1, 2, 3", section 3.2:
        Threefry-2x32 with 20 rounds.

    Args:
        key, counter: two words each. Integers of any dtype, taken modulo 2 ** 32; their shapes
            broadcast.

    Returns:
        Two words, uint32.
    """
    first, second = map(_word, key)
    keys = (first, second, first ^ second ^ _word(_PARITY))
    x, y = (_word(word) + part for word, part in zip(counter, keys, strict=False))
    for group in range(_GROUPS):
        for bits in _ROTATIONS[group % 2]:
            x = x + y
            y = _rotated(y, bits) ^ x
        x = x + keys[(group + 1) % 3]
        y = y + keys[(group + 2) % 3] + _word(group + 1)
    return x, y


def _word(value: Any) -> Any:
    return ops.cast(value, "uint32")


def _rotated(word: Any, bits: int) -> Any:
    left = ops.left_shift(word, _word(bits))
    return ops.bitwise_or(left, ops.right_shift(word, _word(32 - bits)))
