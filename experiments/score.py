"""Scores pairs with a run: python -m experiments.score --run_dir=D --source=F --target=F.

Writes the log-probability of each target given its source, one a line: in nats, over the tokens of
the target and the end token, as `experiments.translate --n_best` writes it of what it finds. An
empty source is not shown to the model, for `translate` answers it with an empty line: an empty
target has log-probability 0 there, any other -inf, and neither counts in the totals.
"""

import math
import sys
import time
from typing import Any

import numpy as np
from absl import flags
from tqdm import tqdm

from experiments import cli, decoding_flags
from seq2seq_memattn.data.text_files import check_output, open_output


def main(arguments: list[str]) -> None:
    """Scores from flags."""
    del arguments
    options = flags.FLAGS
    check_output(options.output, options.source, options.target)
    source_lines, target_lines = decoding_flags.read_pair(options.source, options.target)
    run = decoding_flags.load_run()
    from seq2seq_memattn.pair_scorer import PairScorer
    from seq2seq_memattn.translator import SourceReader, encode_lines

    reader = SourceReader(run, options.max_source_length)
    sources = reader(source_lines, options.source)
    targets = encode_lines(run.target_vocabulary, target_lines, options.target)
    chosen = [i for i, source in enumerate(sources) if len(source)]
    started = time.perf_counter()
    with tqdm(total=len(chosen), unit="pair", file=sys.stderr) as bar:
        log_probs = PairScorer(run.model)(
            [sources[i] for i in chosen],
            [targets[i] for i in chosen],
            options.batch_size,
            bar.update,
        )
    seconds = time.perf_counter() - started
    decoding_flags.report_cut(reader)
    every = np.array([-np.inf if len(target) else 0.0 for target in targets])
    every[chosen] = log_probs
    with open_output(options.output) as stream:
        stream.writelines(f"{log_prob:.6f}\n" for log_prob in every)
    num_tokens = sum(len(targets[i]) + 1 for i in chosen)
    result: dict[str, Any] = {
        "run_dir": options.run_dir,
        "update": run.update,
        "pairs": len(every),
        "empty_sources": len(every) - len(chosen),
        "cut": reader.num_cut,
        "log_prob": float(np.sum(log_probs)),
        "tokens": num_tokens,
        "perplexity": math.exp(-np.sum(log_probs) / num_tokens) if chosen else None,
        "seconds": round(seconds, 2),
    }
    cli.print_result(result, to_stderr=options.output == "-")


if __name__ == "__main__":
    decoding_flags.define_run()
    decoding_flags.define_batch_size()
    flags.DEFINE_string("source", None, "sources, one per line", required=True)
    flags.DEFINE_string("target", None, "their targets, one per line", required=True)
    flags.DEFINE_string("output", "-", "log-probabilities; - is standard output")
    cli.run(main)
