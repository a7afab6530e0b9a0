"""Decodes a file in several ways: python -m experiments.same_translations --run_dir=D --input=F.

Again in the same way, in batches of other sizes, with the maps of the context not folded into the
rows, in TensorFlow's plain graph (or with XLA, if that was not the first way), in one graph where
sentences stay to the last step that they may take, and with products of bfloat16. All but the last
compute the same, but not in the same order, and so not with the same last digits: where two
hypotheses are that near to each other, either may come first. Says how many best hypotheses differ
from those of the first way, and by how much the log-probabilities of all do.
"""

import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from absl import flags

from experiments import cli, decoding_flags
from experiments.records import portable, provenance, write_json
from seq2seq_memattn.compute.hardware import hardware
from seq2seq_memattn.text.files import check_output, read_lines

NEAR = 1e-4  # nats, below which hypotheses count as equally good


class Best(NamedTuple):
    """The best hypothesis of a source: ids, and the score by which search ranks."""

    tokens: Sequence[int]
    score: float


def compare(first: Sequence[Best], other: Sequence[Best]) -> dict[str, Any]:
    """How two decodings of the same sources differ.

    Returns:
        different: sources whose hypothesis differs.
        different_not_near: those among them whose scores differ by `NEAR` or more.
        largest_difference: of the scores of all sources.
        mean_difference: the same, on average.
    """
    pairs = list(zip(first, other, strict=True))
    apart = [abs(a.score - b.score) for a, b in pairs]
    changed = [
        gap for gap, (a, b) in zip(apart, pairs, strict=True) if list(a.tokens) != list(b.tokens)
    ]
    return {
        "different": len(changed),
        "different_not_near": sum(gap >= NEAR for gap in changed),
        "largest_difference": max(apart, default=0.0),
        "mean_difference": sum(apart) / len(apart) if apart else 0.0,
    }


def main(arguments: list[str]) -> None:
    """Compares from flags."""
    from seq2seq_memattn.runs.translator import SourceReader
    from seq2seq_memattn.search.batch_decoder import BatchDecoder, uses_xla

    del arguments
    options = flags.FLAGS
    sizes = cli.positive_numbers("batch_sizes", options.batch_sizes)
    if options.output:
        check_output(options.output)
    lines = read_lines(options.input)
    run = decoding_flags.load_run()
    read = SourceReader(run, options.max_source_length)
    sources = [source for source in read(lines, options.input) if len(source)]
    decoding_flags.report_cut(read)

    def decode(size: int = sizes[0], model: Any = run.model, **way: Any) -> list[Best]:
        decoder = BatchDecoder(
            model, options.beam_size, length_penalty_exponent=options.length_penalty, **way
        )
        found = decoder(sources, size)
        return [Best(best[0].tokens.tolist(), best[0].normalised_log_prob) for best in found]

    xla = uses_xla(len(sources))
    ways: dict[str, Callable[[], list[Best]]] = {
        "again": decode,
        **{f"batches of {size}": functools.partial(decode, size) for size in sizes[1:]},
        "not folded": lambda: decode(folded=False),
        "plain graph" if xla else "XLA": lambda: decode(jit_compile=not xla),
        "one graph, no early exit": lambda: _in_one_graph(run.model, sources, sizes[0]),
        "bfloat16 products": lambda: decode(
            model=decoding_flags.load_run(precision="bfloat16_products").model
        ),
    }
    cli.print_note(f"batches of {sizes[0]}")
    first, rows = decode(), []
    for way, found in ways.items():
        cli.print_note(way)
        rows.append({"way": way, **compare(first, found())})
    result = {
        **provenance(hardware()),
        "run_dir": portable(options.run_dir),
        "update": run.update,
        "sources": len(sources),
        "batch_size": sizes[0],
        "rows": rows,
    }
    if options.output:
        write_json(Path(options.output), result)
    cli.print_result(result)


def _in_one_graph(model: Any, sources: Sequence[np.ndarray], size: int) -> list[Best]:
    """Decodes with `beam_search`, which keeps a batch together; sentences go to their limits."""
    from seq2seq_memattn.search.batch_decoder import sorted_batches
    from seq2seq_memattn.search.beam import beam_search
    from seq2seq_memattn.search.compiled import compiled

    options = flags.FLAGS

    def whole_search(source: Any) -> Any:
        exponent = options.length_penalty
        return beam_search(model, source, options.beam_size, 1, exponent, early_stopping=False)

    search, results = compiled(model, whole_search), {}
    for indices, batch in sorted_batches(sources, size):
        found = search(batch)
        tokens, lengths, scores = (
            np.asarray(array)[:, 0]
            for array in (found.tokens, found.lengths, found.normalised_log_probs)
        )
        for row, index in enumerate(indices):
            results[index] = Best(tokens[row, : lengths[row]].tolist(), float(scores[row]))
    return [results[index] for index in range(len(sources))]


if __name__ == "__main__":
    decoding_flags.define()
    flags.DEFINE_string(
        "input", None, "sources, one per line, as `evaluate` takes them", required=True
    )
    flags.DEFINE_list("batch_sizes", ["128", "1", "7"], "sources decoded at a time")
    flags.DEFINE_string("output", None, "JSON file for the figures")
    cli.run(main)
