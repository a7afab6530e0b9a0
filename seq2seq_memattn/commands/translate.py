"""Translates a file.

`-` is standard input or output. Lines from a pipe are translated as they arrive. With `--n_best=N`,
each source gives N lines of `number ||| translation ||| log-probability`, with sources numbered
from 0; if N is 1, only the translation. With `--sample=N`, N translations are drawn at random
instead of found by beam search. Their log-probabilities are the model's at temperature 1; the
sampling flags do not change them.
Sources and translations are plain text. If the training text was tokenised or truecased, the
command tokenises or truecases sources in the same way and restores plain text in its output. The
text files of a data directory already have the form of the training text; pass
`--noreadable_sources` for them.
"""

import contextlib
import math
import secrets
import time
import zipfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from seq2seq_memattn.commands.shared import cli, run_flags
from seq2seq_memattn.notes import STANDARD_ERROR, print_note
from seq2seq_memattn.text.files import (
    STANDARD_STREAM,
    check_output,
    display_name,
    iterate_lines,
    naming_errors,
    open_binary_output,
    open_output,
    read_lines,
)
from seq2seq_memattn.text.form import AS_GIVEN, TextForm, looks_tokenised
from seq2seq_memattn.text.line_chunks import is_stream, line_chunks
from seq2seq_memattn.vocabulary import Vocabulary

CHUNK_LINES = 20_000  # maximum number of lines sorted by length, translated and written together


def define(flags: cli.Flags) -> None:
    """The flags of this command."""
    run_flags.define_run(flags, together=True)
    run_flags.define_search(flags)
    run_flags.define_sampling(
        flags, "draw this many translations of each source at random instead of beam search"
    )
    flags.integer(
        "sample_seed",
        None,
        "seed of the random translations; by default a new one each time, printed with the figures "
        "at the end",
        lower_bound=0,
    )
    run_flags.define_batch_size(flags)
    flags.group("Text")
    flags.string("input", None, "sources, one per line; - for standard input", required=True)
    flags.string("output", None, "file for the translations; - for standard output", required=True)
    flags.string(
        "prefixes",
        None,
        "file with the first words of each translation, one line per source; an empty line sets "
        "none; with --noreadable, the file must be tokenised and cased like the training text",
    )
    flags.integer("n_best", 1, "translations per source", lower_bound=1)
    flags.boolean(
        "readable_sources",
        True,
        "tokenise and truecase the sources like the training text",
    )
    flags.boolean(
        "readable",
        True,
        "write plain text: undo the tokenisation and truecasing that the training text had",
    )
    flags.string(
        "alignments",
        None,
        "write alignments to this .npz file; its arrays have the names LINE.RANK, both from 0, and "
        "the shape [target tokens, source tokens], end tokens included",
    )


def main(arguments: cli.Arguments) -> None:
    """Translates the file that the flags name."""
    sampling, seed = _sampling(arguments)
    num_translations = arguments.n_best if sampling is None else arguments.sample
    _check_paths(arguments)
    # A file can be read twice: all its lines are checked before the work begins.
    name = display_name(arguments.input)
    is_file = arguments.input != STANDARD_STREAM and not is_stream(arguments.input)
    total = sum(1 for _ in iterate_lines(arguments.input)) if is_file else None
    prefixes = read_lines(arguments.prefixes) if arguments.prefixes else None
    if prefixes is not None and total is not None:
        run_flags.check_lines(arguments.prefixes, prefixes, total)
    run = run_flags.load_runs(arguments)
    translator = run_flags.make_translator(
        run, arguments, num_translations, bool(arguments.alignments), sampling, seed
    )
    if is_file:
        chunks = line_chunks(arguments.input, CHUNK_LINES)
        _check_lines(run.source_vocabulary, chunks, name)
    sources_form = run.text_form if arguments.readable_sources else AS_GIVEN
    form = run.text_form if arguments.readable else AS_GIVEN
    if prefixes is not None:
        prefixes = form.beginnings_as_trained(prefixes)
        _check_lines(run.target_vocabulary, [prefixes], arguments.prefixes)
    number, seconds = 0, 0.0
    with (
        _alignments_file(arguments.alignments) as write_alignments,
        open_output(arguments.output) as output,
        tqdm(total=total, unit="sentence", file=STANDARD_ERROR) as bar,
    ):
        for lines in line_chunks(arguments.input, CHUNK_LINES):
            if not number:
                _report_form(sources_form, lines, name)
            started = time.perf_counter()
            translations = translator(
                sources_form.as_trained(lines, run.directory),
                arguments.batch_size,
                name,
                bar.update,
                number + 1,
                _beginnings(arguments.prefixes, prefixes, number, len(lines)),
                arguments.prefixes,
            )
            seconds += time.perf_counter() - started
            for found in translations:
                texts = form.readable([one.text for one in found])
                for rank, (text, one) in enumerate(zip(texts, found, strict=True)):
                    output.write(f"{_line(number, text, one, num_translations)}\n")
                    write_alignments(f"{number}.{rank}", one)
                number += 1
            output.flush()
        if prefixes is not None:  # before the output replaces an earlier one
            run_flags.check_lines(arguments.prefixes, prefixes, number)
    run_flags.report_cut(translator.sources)
    cli.print_result(
        {
            "run_dir": arguments.run_dir,
            "update": run.update,
            "lines": number,
            "cut": translator.sources.num_cut,
            **({} if sampling is None else {"sample_seed": seed}),
            "seconds": round(seconds, 2),
        },
        to_stderr=arguments.output == "-",
    )


def _check_paths(arguments: cli.Arguments) -> None:
    """Raises ValueError or OSError for an output that cannot be written, or inputs that clash."""
    if arguments.input == arguments.prefixes == STANDARD_STREAM:
        raise ValueError("--prefixes: expected a file, since --input takes standard input")
    given = [path for path in (arguments.input, arguments.prefixes) if path]
    outputs = list(filter(None, (arguments.output, arguments.alignments)))
    for path in outputs:
        check_output(path, *given)
    if len({Path(path).resolve() for path in outputs}) < len(outputs):
        raise ValueError("--alignments: expected another file than --output")
    if arguments.alignments == STANDARD_STREAM:
        raise ValueError("--alignments: expected a file, since arrays cannot go to a terminal")


def _report_form(form: TextForm, lines: list[str], name: str) -> None:
    """Prints a note if lines look tokenised already, or must already be divided into words."""
    if form.tokenises_sources and looks_tokenised(lines):
        print_note(f"{name}: looks tokenised already; use --noreadable_sources to keep it as it is")
    elif form.is_tokenised and not form.tokenises_sources:
        print_note(
            f"{name}: expected spaces between the words; {form.source_language} is written without "
            "them, and this command cannot divide it into words"
        )


def _check_lines(vocabulary: Vocabulary, chunks: Iterable[list[str]], name: str) -> None:
    """Raises ValueError for a line that the vocabulary cannot encode."""
    from seq2seq_memattn.runs.translator import encode_lines

    number = 1
    for lines in chunks:
        encode_lines(vocabulary, lines, name, number)
        number += len(lines)


def _beginnings(name: str, prefixes: list[str] | None, first: int, count: int) -> list[str] | None:
    """The prefixes of `count` sources; None without prefixes."""
    if prefixes is None:
        return None
    found = prefixes[first : first + count]
    if len(found) < count:
        raise ValueError(f"{name}: expected as many lines as sources, got {len(prefixes)}")
    return found


def _sampling(arguments: cli.Arguments) -> tuple[Any, int]:
    """The `Sampling` (None: beam search) and the seed; raises ValueError if flags clash."""
    sampling = run_flags.sampling_of(arguments)
    if sampling is None:
        return None, 0
    for name in ("beam_size", "n_best", "length_penalty", "length_reward", "coverage_penalty"):
        if name in arguments.given:
            raise ValueError(f"--{name}: not with --sample, which does no beam search")
    given = arguments.sample_seed
    return sampling, secrets.randbelow(2**31) if given is None else given


def _line(number: int, text: str, translation: Any, num_translations: int) -> str:
    if num_translations == 1:
        return text
    from seq2seq_memattn.search.top_successors import is_dead

    log_prob = translation.hypothesis.log_prob if translation.hypothesis else 0.0
    if is_dead(log_prob):  # fewer than N translations fit the constraints
        log_prob = -math.inf
    return f"{number} ||| {text} ||| {log_prob:.4f}"


@contextlib.contextmanager
def _alignments_file(path: str | None) -> Iterator[Callable[[str, Any], None]]:
    """Opens an .npz file that takes one array at a time.

    Yields:
        A function that takes a name and a translation, and writes the translation's alignment
        [target_length, source_length] under that name.
    """
    if not path:
        yield lambda name, translation: None
        return
    with (
        open_binary_output(Path(path)) as binary,
        zipfile.ZipFile(binary, "w", zipfile.ZIP_DEFLATED) as archive,
    ):

        def write(name: str, translation: Any) -> None:
            # Without the name, an error here would be taken for one of the output.
            if translation.hypothesis:
                with (
                    naming_errors(path),
                    archive.open(f"{name}.npy", "w", force_zip64=True) as member,
                ):
                    np.lib.format.write_array(member, translation.hypothesis.alignment)

        yield write
