"""A random sample of bounded size from a stream of lines."""

import math
import random


class LineSample:
    """A uniform random sample of lines, without replacement.

    If there are at most `capacity` lines, the sample has all of them, in order.

    Source: Li (1994), "Reservoir-sampling algorithms of time complexity O(n(1 + log(N/n)))",
        algorithm L.

    Args:
        capacity: int > 0. The maximum number of lines in the sample.
        seed: int. Seed of the sample.

    Attributes:
        lines: the sample of the lines so far.
    """

    def __init__(self, capacity: int, seed: int) -> None:
        self.lines: list[bytes] = []
        self._capacity = capacity
        self._random = random.Random(seed)
        self._largest = 1.0  # largest of the uniform numbers that belong to the sampled lines
        self._num_seen = 0
        self._next = 0  # number of the next line to take

    def add(self, line: bytes) -> None:
        """Offers the next line to the sample."""
        number = self._num_seen
        self._num_seen += 1
        if number < self._next:
            return
        if number < self._capacity:
            self.lines.append(line)
            self._next = number + 1
            if self._next < self._capacity:
                return
        else:
            self.lines[self._random.randrange(self._capacity)] = line
        self._largest *= math.exp(math.log(1.0 - self._random.random()) / self._capacity)
        gap = math.log(1.0 - self._random.random()) / math.log1p(-self._largest)
        self._next = number + 1 + int(gap)
