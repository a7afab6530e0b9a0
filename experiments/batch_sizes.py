"""Translates a file in batches of several sizes: python -m experiments.batch_sizes --run_dir=D.

Batches change the order of sums, and so the last digits of log-probabilities: where two hypotheses
are that near to each other, either may come first. Says how many translations differ from those of
the first size, and by how much the log-probabilities of those do; the first size is decoded twice.
"""

from pathlib import Path
from typing import Any

from absl import flags

from experiments import cli, decoding_flags
from experiments.records import hardware, portable, provenance, write_json
from seq2seq_memattn.data.text_files import check_output, read_lines

NEAR = 1e-4  # nats, below which hypotheses count as equally good


def compare(first: list[Any], other: list[Any]) -> dict[str, Any]:
    """How the best translations of two decodings differ.

    Args:
        first, other: as `Translator` gives them.

    Returns:
        different: lines whose text differs.
        different_not_near: those among them whose scores, by which search ranks, differ by `NEAR`
            or more.
        largest_difference: of the scores of all lines.
    """
    pairs = [(a[0], b[0]) for a, b in zip(first, other, strict=True) if a[0].hypothesis is not None]
    apart = [
        abs(a.hypothesis.normalised_log_prob - b.hypothesis.normalised_log_prob) for a, b in pairs
    ]
    changed = [gap for gap, (a, b) in zip(apart, pairs, strict=True) if a.text != b.text]
    return {
        "different": len(changed),
        "different_not_near": sum(gap >= NEAR for gap in changed),
        "largest_difference": max(apart, default=0.0),
    }


def main(arguments: list[str]) -> None:
    """Compares from flags."""
    del arguments
    options = flags.FLAGS
    sizes = cli.positive_numbers("batch_sizes", options.batch_sizes)
    if options.output:
        check_output(options.output)
    lines = read_lines(options.input)
    run, translator = decoding_flags.make_translator()
    first = translator(lines, sizes[0], options.input)
    rows = []
    for size in sizes:
        cli.print_note(f"batches of {size}")
        other = translator(lines, size, options.input)
        rows.append({"batch_size": size, **compare(first, other)})
    result = {
        **provenance(hardware()),
        "run_dir": portable(options.run_dir),
        "update": run.update,
        "lines": len(lines),
        "rows": rows,
    }
    if options.output:
        write_json(Path(options.output), result)
    cli.print_result(result)


if __name__ == "__main__":
    decoding_flags.define()
    flags.DEFINE_string(
        "input", None, "sources, one per line, as `evaluate` takes them", required=True
    )
    flags.DEFINE_list("batch_sizes", ["128", "1", "7"], "sources decoded at a time")
    flags.DEFINE_string("output", None, "JSON file for the figures")
    cli.run(main)
