"""Makes a large parallel corpus for measurements by repeating and varying a small one."""

import random
from collections.abc import Sequence
from itertools import cycle
from pathlib import Path

from seq2seq_memattn.text.files import open_output

REPEATED = 0.1  # share of the pairs that are exact repetitions
REPLACED = 0.15  # share of the words in other pairs that are replaced by words of the corpus
NUMBERED = 0.01  # share of the words in these pairs that get a number, so new words keep appearing


def write_varied(
    sides: Sequence[Sequence[str]], num_pairs: int, paths: Sequence[Path], seed: int = 0
) -> None:
    """Writes a corpus.

    Args:
        sides: source and target lines of the small corpus.
        num_pairs: int > 0. Pairs to write.
        paths: paths of the source and target files.
        seed: int. Seed of the variation.
    """
    generator = random.Random(seed)
    words = [[word for line in side for word in line.split(" ")] for side in sides]
    pairs = cycle(zip(*sides, strict=True))
    with open_output(paths[0]) as sources, open_output(paths[1]) as targets:
        for _ in range(num_pairs):
            source, target = next(pairs)
            if generator.random() >= REPEATED:
                source = _varied(source, words[0], generator)
                target = _varied(target, words[1], generator)
            sources.write(source + "\n")
            targets.write(target + "\n")


def _varied(line: str, words: list[str], generator: random.Random) -> str:
    """Returns a line with some words replaced or numbered."""
    varied = []
    for word in line.split(" "):
        chance = generator.random()
        if chance < REPLACED:
            word = words[int(chance / REPLACED * len(words))]
        elif chance < REPLACED + NUMBERED:
            word = f"{word}{generator.randrange(10_000)}"
        varied.append(word)
    return " ".join(varied)
