"""Scores pairs with a run.

Writes the log-probability of each target given its source, one per line, in nats. It is the sum
over the target's tokens and the end token, like the log-probabilities of `memattn translate
--n_best`. Sources and targets must have the form of the training text: if it was tokenised, they
must be, too. The model does not see empty sources, which `translate` always answers with an empty
line. An empty source gives an empty target the log-probability 0 and any other target -inf. Pairs
with an empty source do not count in the totals.
"""

import math
import time
from typing import Any

import numpy as np
from tqdm import tqdm

from seq2seq_memattn.commands.shared import cli, run_flags
from seq2seq_memattn.notes import STANDARD_ERROR
from seq2seq_memattn.text.files import check_output, open_output


def define(flags: cli.Flags) -> None:
    """The flags of this command."""
    run_flags.define_run(flags)
    run_flags.define_batch_size(flags)
    flags.group("Text")
    flags.string("source", None, "sources, one per line", required=True)
    flags.string("target", None, "their targets, one per line", required=True)
    flags.string("output", "-", "file for the log-probabilities; - for standard output")


def main(arguments: cli.Arguments) -> None:
    """Scores the pairs that the flags name."""
    check_output(arguments.output, arguments.source, arguments.target)
    source_lines, target_lines = run_flags.read_pair(arguments.source, arguments.target)
    if arguments.precision == "int8_products":
        raise ValueError("--precision: int8_products is for search; scores need another one")
    run = run_flags.load_run(arguments)
    from seq2seq_memattn.runs.pair_scorer import PairScorer
    from seq2seq_memattn.runs.translator import SourceReader, encode_lines

    reader = SourceReader(run, arguments.max_source_length)
    sources = reader(source_lines, arguments.source)
    targets = encode_lines(run.target_vocabulary, target_lines, arguments.target)
    chosen = [i for i, source in enumerate(sources) if len(source)]
    started = time.perf_counter()
    with tqdm(total=len(chosen), unit="pair", file=STANDARD_ERROR) as bar:
        log_probs = PairScorer(run.model)(
            [sources[i] for i in chosen],
            [targets[i] for i in chosen],
            arguments.batch_size,
            bar.update,
        )
    seconds = time.perf_counter() - started
    run_flags.report_cut(reader)
    every = np.array([-np.inf if len(target) else 0.0 for target in targets])
    every[chosen] = log_probs
    with open_output(arguments.output) as stream:
        stream.writelines(f"{log_prob:.6f}\n" for log_prob in every)
    num_tokens = sum(len(targets[i]) + 1 for i in chosen)
    log_prob = float(np.sum(log_probs))
    result: dict[str, Any] = {
        "run_dir": arguments.run_dir,
        "update": run.update,
        "pairs": len(every),
        "empty_sources": len(every) - len(chosen),
        "cut": reader.num_cut,
        "log_prob": log_prob if math.isfinite(log_prob) else None,
        "tokens": num_tokens,
        "perplexity": _perplexity(log_prob, num_tokens),
        "seconds": round(seconds, 2),
    }
    cli.print_result(result, to_stderr=arguments.output == "-")


def _perplexity(log_prob: float, num_tokens: int) -> float | None:
    """The perplexity; None if it is not finite, which JSON cannot say."""
    with np.errstate(all="ignore"):
        found = float(np.exp(np.divide(-log_prob, num_tokens)))
    return found if math.isfinite(found) else None
