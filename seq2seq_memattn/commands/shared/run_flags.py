"""The common part of commands that use a trained run: flags, loading the run, pairs of files."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

from seq2seq_memattn.commands.shared.cli import Arguments, Flags
from seq2seq_memattn.config import DecodingPrecision
from seq2seq_memattn.notes import print_note
from seq2seq_memattn.text.files import read_lines


def define_run(flags: Flags, together: bool = False) -> None:
    """Defines the flags of all commands that read sources with a run.

    Args:
        flags: the command's flags.
        together: whether several runs can decode together.
    """
    flags.group("Run")
    several = "; several, separated by commas, decode together" if together else ""
    flags.string("run_dir", None, f"run directory of a trained model{several}", required=True)
    if together:
        flags.choice(
            "ensemble_mean",
            "probabilities",
            ("probabilities", "log_probabilities"),
            "several runs: take the mean of their probabilities or of their log-probabilities",
        )
    flags.string(
        "checkpoint",
        "best",
        "which weights: best, latest, or a file of the run, such as average.npz",
    )
    flags.integer(
        "max_source_length",
        None,
        "cut sources to this many tokens, end token included; longer sources than the model can "
        "read are always cut",
        lower_bound=2,
    )
    flags.choice(
        "precision",
        "float32",
        get_args(DecodingPrecision),
        "precision of decoding, whatever the run was trained with; bfloat16_products: faster on "
        "CPUs with bfloat16 units, for files of 64 lines or more; int8_products: eight-bit "
        "matrices; on CPUs with VNNI, faster for files of 64 lines or more and slower for fewer; "
        "makes exported models a quarter as large, but not faster",
    )
    flags.number(
        "threshold",
        None,
        "flexible attention: score only positions whose penalty is below this; 0: score all "
        "positions; by default as in the run",
        lower_bound=0.0,
    )


def define_search(flags: Flags) -> None:
    """Defines the flags of beam search."""
    flags.group("Search")
    flags.integer("beam_size", 10, "hypotheses kept per source", lower_bound=1)
    flags.number("length_penalty", 0.0, "exponent of the GNMT length penalty")
    flags.number("length_reward", 0.0, "added to a hypothesis's score for each token")
    flags.number(
        "coverage_penalty",
        0.0,
        "weight of the GNMT coverage penalty, which prefers translations that read the whole "
        "source; slower for long sources",
        lower_bound=0.0,
    )
    flags.number(
        "min_length_ratio",
        None,
        "translations have at least this many tokens per token of their source",
        lower_bound=0.0,
    )
    flags.number(
        "max_length_ratio",
        None,
        "translations have at most this many tokens per token of their source, end tokens "
        "included; by default, translations have at most twice as many tokens as their source, "
        "plus 10",
        lower_bound=0.01,
    )
    flags.integer(
        "no_repeat_ngram",
        0,
        "never write a sequence of this many tokens twice; 0: no such rule",
        lower_bound=0,
    )
    flags.items(
        "banned",
        [],
        "target tokens that are never written, such as <unk>; a subword is banned "
        "both at the start of words and inside them",
    )


def define_sampling(flags: Flags, samples: str) -> None:
    """Defines the flags of sampling.

    Args:
        flags: the command's flags.
        samples: help text of `--sample`.
    """
    flags.group("Sampling")
    flags.integer("sample", None, samples, lower_bound=1)
    flags.number(
        "temperature", 1.0, "divide the logits by this; values below 1 favour probable tokens"
    )
    flags.integer("top_k", 0, "draw from this many of the most probable tokens; 0: from all")
    flags.number(
        "top_p", 1.0, "draw from the most probable tokens that together have this probability"
    )


def sampling_of(arguments: Arguments) -> Any:
    """The `Sampling` that the flags describe; None without `--sample`.

    Raises:
        ValueError: for a number out of range, or another flag of sampling without `--sample`.
    """
    from seq2seq_memattn.search.options import Sampling

    if arguments.sample is not None:
        return Sampling(arguments.temperature, arguments.top_k, arguments.top_p)
    for name in ("temperature", "top_k", "top_p", "sample_seed"):
        if name in arguments.given:
            raise ValueError(f"--{name}: expected --sample too")
    return None


def define_batch_size(flags: Flags) -> None:
    """Defines `--batch_size`, for commands that read a file in batches."""
    flags.integer("batch_size", 100, "sources per batch", lower_bound=1)


def load_run(
    arguments: Arguments, precision: DecodingPrecision | None = None, run_dir: str | None = None
) -> Any:
    """Loads the run that the flags name.

    Prints a note for each damaged checkpoint that was skipped, and for a precision that is slow on
    this processor.

    Args:
        arguments: the command's arguments.
        precision, run_dir: replace the flags' values if given.
    """
    from seq2seq_memattn.runs import directory

    precision = precision or arguments.precision
    report_slow_products(precision)
    run = directory.load_run(
        Path(run_dir or arguments.run_dir), arguments.checkpoint, arguments.threshold, precision
    )
    for problem in run.problems:
        print_note(f"{problem}; the one before it is used")
    return run


def load_runs(arguments: Arguments, precision: DecodingPrecision | None = None) -> Any:
    """Loads the run that the flags name, or several as one `Run` with an `Ensemble`.

    Args:
        arguments: the command's arguments.
        precision: replaces the flag's value if given.
    """
    from seq2seq_memattn.runs.ensemble import ensemble_of

    folders = [arguments.run_dir]
    if not Path(arguments.run_dir).exists():
        folders = arguments.run_dir.split(",")
    runs = [load_run(arguments, precision, folder) for folder in folders]
    if len(runs) > 1:
        return ensemble_of(runs, arguments.ensemble_mean)
    if "ensemble_mean" in arguments.given:
        raise ValueError("--ensemble_mean: expected several runs")
    return runs[0]


def banned_ids(tokens: Sequence[str], vocabulary: Any) -> tuple[int, ...]:
    """The ids of banned tokens; raises ValueError for one that the vocabulary does not have."""
    found: set[int] = set()
    for token in tokens:
        ids = vocabulary.ids_of(token)
        if not ids:
            raise ValueError(f"--banned: expected a token of the target vocabulary, got {token!r}")
        found.update(ids)
    return tuple(sorted(found))


def make_translator(
    run: Any,
    arguments: Arguments,
    n_best: int = 1,
    return_alignments: bool = False,
    sampling: Any = None,
    seed: int = 0,
) -> Any:
    """Makes a `Translator` of a run with the search that the flags describe."""
    from seq2seq_memattn.runs.translator import Translator
    from seq2seq_memattn.search.options import Lengths, options_of

    banned = banned_ids(arguments.banned, run.target_vocabulary)
    options = options_of(arguments, banned, n_best, sampling)
    lengths = Lengths(
        max_length_ratio=arguments.max_length_ratio, min_length_ratio=arguments.min_length_ratio
    )
    limit = arguments.max_source_length
    return Translator(run, options, lengths, limit, return_alignments, seed)


def report_slow_products(*precisions: str) -> None:
    """Prints a note for each precision that is known to gain no speed on this machine."""
    if not {"bfloat16_products", "int8_products"} & set(precisions):
        return
    import keras

    from seq2seq_memattn.compute.backend import gpu_name
    from seq2seq_memattn.compute.hardware import has_bfloat16_units, has_int8_units
    from seq2seq_memattn.compute.int8 import has_int8_kernel

    if gpu_name() is not None:
        if "int8_products" in precisions:
            print_note("int8_products gains no speed on a GPU")
        return
    if "bfloat16_products" in precisions and has_bfloat16_units() is False:
        print_note(
            "bfloat16_products will be slow: this processor has no units for bfloat16; float32 is "
            "faster here"
        )
    if "int8_products" in precisions:
        missing = ""
        if not has_int8_units():
            missing = "no units for eight bits (VNNI) were found in this processor"
        elif not has_int8_kernel():
            missing = f"{keras.backend.backend()} has no fast kernel for them here"
        if missing:
            print_note(
                f"int8_products will be slow in batches: {missing}; single sentences may gain"
            )


def report_cut(sources: Any) -> None:
    """Prints a note with the number of sources that a `SourceReader` cut, if any."""
    if sources.num_cut:
        print_note(f"{sources.num_cut} sources were cut at {sources.limit} tokens")


def read_pair(source: str, target: str) -> tuple[list[str], list[str]]:
    """Reads two parallel files; ValueError with both counts if their numbers of lines differ."""
    sources, targets = read_lines(source), read_lines(target)
    if len(sources) != len(targets):
        raise ValueError(
            f"{source} and {target}: expected as many lines in both, got {len(sources)} and "
            f"{len(targets)}"
        )
    return sources, targets


def check_lines(path: str, lines: Sequence[str], expected: int) -> None:
    """Raises ValueError, with both counts, if a file does not have as many lines as expected."""
    if len(lines) != expected:
        raise ValueError(f"{path}: expected {expected} lines, got {len(lines)}")
