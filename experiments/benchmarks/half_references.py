"""Checks search with given prefixes: python -m experiments.benchmarks.half_references.

The given prefix of a translation is the first half of the words of its reference; in every fifth
line, the first quarter; in every seventh, nothing. Search should find the best continuation.
Translations must therefore begin with the prefix, and the model must score them at least as high as
the reference: a lower score is a search error. Sources and references must have the form of the
training text (tokenisation and case).
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments.reproduction.results import portable, report
from seq2seq_memattn.commands.shared import cli, run_flags
from seq2seq_memattn.notes import print_note

BATCH_SIZE = 100
EQUAL = 0.01  # nats by which log-probabilities that count as equal may differ


def beginnings(references: Sequence[str]) -> list[str]:
    """Returns the prefix with which the translation of each line must begin."""
    words = [line.split() for line in references]
    parts = [0 if i % 7 == 0 else 4 if i % 5 == 0 else 2 for i in range(len(words))]
    counts = [len(line) // part if part else 0 for line, part in zip(words, parts, strict=True)]
    return [" ".join(line[:count]) for line, count in zip(words, counts, strict=True)]


def check(folder: Path, sources: Sequence[str], references: Sequence[str]) -> dict[str, Any]:
    """Translates with a run, and counts the lines that pass each check."""
    from seq2seq_memattn.runs.directory import load_run
    from seq2seq_memattn.runs.pair_scorer import PairScorer
    from seq2seq_memattn.runs.translator import Translator, encode_lines

    run = load_run(folder)
    scorer, given = PairScorer(run.model), beginnings(references)
    ids = encode_lines(run.source_vocabulary, sources, "source")
    best = [found[0] for found in Translator(run)(sources, BATCH_SIZE, prefixes=given)]
    texts = [one.text for one in best]

    def score(lines: Sequence[str]) -> Any:
        return scorer(ids, encode_lines(run.target_vocabulary, lines, "target"), BATCH_SIZE)

    scored = score(texts)
    searched = np.array([one.hypothesis.log_prob if one.hypothesis else 0.0 for one in best])
    begin = [
        text.split()[: len(start.split())] == start.split()
        for text, start in zip(texts, given, strict=True)
    ]
    return {
        "run_dir": portable(str(folder)),
        "attention": run.model.config.attention,
        "update": run.update,
        "lines": len(sources),
        "begin_as_given": sum(begin),
        "score_at_least_the_reference": int(np.sum(scored >= score(references) - EQUAL)),
        "log_prob_equals_score": int(np.sum(np.abs(searched - scored) < EQUAL)),
    }


def define(flags: cli.Flags) -> None:
    """The flags of this command."""
    flags.items("runs", None, "run directories", required=True)
    flags.string("source", None, "sources, one per line", required=True)
    flags.string("reference", None, "references, one per line", required=True)
    flags.integer("num_sentences", 500, "lines to translate", lower_bound=1)
    flags.string("output", None, "JSON file for the rows")


def main(arguments: cli.Arguments) -> None:
    """Checks the runs that the flags name."""
    pairs = run_flags.read_pair(arguments.source, arguments.reference)
    # Empty sources never reach the model.
    kept = [pair for pair in zip(*pairs, strict=True) if pair[0]][: arguments.num_sentences]
    sources, references = [source for source, _ in kept], [target for _, target in kept]
    rows = []
    for name in arguments.runs:
        print_note(f"translating with {name}")
        rows.append(check(Path(name), sources, references))
    report(rows, arguments.output)


if __name__ == "__main__":
    cli.launch(sys.modules[__name__])
