"""Translates a file: python -m experiments.translate --run_dir=D --input=F --output=F.

`-` is standard input or output. With `--n_best=N` each source gives N lines of
`number ||| translation ||| log-probability`, numbers from 0 on. Translations are text as people
write it: where the training text was tokenised or truecased, that is undone.
"""

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from absl import flags
from tqdm import tqdm

from experiments import cli, decoding_flags
from seq2seq_memattn.data.text_files import (
    atomic_binary,
    check_output,
    open_output,
    read_lines,
)


def main(arguments: list[str]) -> None:
    """Translates from flags."""
    del arguments
    options = flags.FLAGS
    for path in filter(None, (options.output, options.alignments)):
        check_output(path)
    lines = read_lines(options.input)
    run, translator = decoding_flags.make_translator(options.n_best, bool(options.alignments))
    started = time.perf_counter()
    with tqdm(total=len(lines), unit="sentence", file=sys.stderr) as bar:
        translations = translator(lines, options.batch_size, options.input, bar.update)
    seconds = time.perf_counter() - started
    decoding_flags.report_cut(translator.sources)
    with open_output(options.output) as stream:
        for number, found in enumerate(translations):
            texts = [one.text for one in found]
            if options.readable:
                texts = run.text_form.readable(texts)
            for text, one in zip(texts, found, strict=True):
                stream.write(f"{_line(number, text, one, options.n_best)}\n")
    if options.alignments:
        _write_alignments(options.alignments, translations)
    cli.print_result(
        {
            "run_dir": options.run_dir,
            "update": run.update,
            "lines": len(lines),
            "cut": translator.sources.num_cut,
            "seconds": round(seconds, 2),
        },
        to_stderr=options.output == "-",
    )


def _line(number: int, text: str, translation: Any, n_best: int) -> str:
    if n_best == 1:
        return text
    log_prob = translation.hypothesis.log_prob if translation.hypothesis else 0.0
    return f"{number} ||| {text} ||| {log_prob:.4f}"


def _write_alignments(path: str, translations: list) -> None:
    """One array per source and rank, named `number.rank`: [target_length, source_length]."""
    arrays = {
        f"{number}.{rank}": one.hypothesis.alignment
        for number, found in enumerate(translations)
        for rank, one in enumerate(found)
        if one.hypothesis
    }
    with atomic_binary(Path(path).resolve()) as stream:
        np.savez_compressed(stream, **arrays)


if __name__ == "__main__":
    decoding_flags.define()
    flags.DEFINE_string("input", None, "sources, one per line; - is standard input", required=True)
    flags.DEFINE_string("output", None, "translations; - is standard output", required=True)
    flags.DEFINE_integer("n_best", 1, "translations per source", lower_bound=1)
    flags.DEFINE_bool("readable", True, "undo the tokenisation and truecasing of the training text")
    flags.DEFINE_string("alignments", None, "an .npz file for the alignments")
    cli.run(main)
