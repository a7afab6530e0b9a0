"""Makes a large parallel corpus for measurements, by repeating and varying small ones.

    python -m tests.data_prep.varied_corpus NUM_PAIRS PREFIX SOURCE TARGET

writes PREFIX.source and PREFIX.target. One pair in ten is an exact repetition; in the others some
words are replaced by words of the corpus, and some get a number, so that new words keep coming.
"""

import random
import sys
from itertools import cycle

from seq2seq_memattn.data.text_files import open_output, read_lines

REPEATED = 0.1  # share of pairs
REPLACED = 0.15  # share of the words of the others
NUMBERED = 0.01


def vary(line: str, words: list[str], generator: random.Random) -> str:
    """Returns a line with some words replaced."""
    varied = []
    for word in line.split(" "):
        chance = generator.random()
        if chance < REPLACED:
            word = words[int(chance / REPLACED * len(words))]
        elif chance < REPLACED + NUMBERED:
            word = f"{word}{generator.randrange(10_000)}"
        varied.append(word)
    return " ".join(varied)


def main(num_pairs: int, prefix: str, *files: str) -> None:
    """Writes the corpus."""
    generator = random.Random(num_pairs)
    sides = [read_lines(file) for file in files]
    words = [[word for line in side for word in line.split(" ")] for side in sides]
    pairs = cycle(zip(*sides, strict=True))
    with open_output(f"{prefix}.source") as sources, open_output(f"{prefix}.target") as targets:
        for _ in range(num_pairs):
            pair = next(pairs)
            if generator.random() >= REPEATED:
                pair = tuple(vary(*side, generator) for side in zip(pair, words, strict=True))
            sources.write(pair[0] + "\n")
            targets.write(pair[1] + "\n")


if __name__ == "__main__":
    main(int(sys.argv[1]), *sys.argv[2:])
