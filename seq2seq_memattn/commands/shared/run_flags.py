"""The common part of commands that use a trained run: flags, loading the run, pairs of files."""

from pathlib import Path
from typing import Any, get_args

from seq2seq_memattn.commands.shared.cli import Arguments, Flags
from seq2seq_memattn.config import Precision
from seq2seq_memattn.notes import print_note
from seq2seq_memattn.text.files import read_lines


def define_run(flags: Flags) -> None:
    """Defines the flags of every command that reads sources."""
    flags.group("Run")
    flags.string("run_dir", None, "run directory of a trained model", required=True)
    flags.string(
        "checkpoint",
        "best",
        "which weights: best, latest, or a file of the run, such as average.npz",
    )
    flags.integer(
        "max_source_length",
        None,
        "cut sources to this many tokens, end token included; by default only to what the model "
        "can read",
        lower_bound=1,
    )
    flags.choice(
        "precision",
        "float32",
        get_args(Precision),
        "dtype policy for decoding, whatever the run was trained with; bfloat16_products rounds "
        "the operands of products to bfloat16, which is faster on CPUs with bfloat16 units, for "
        "files of 64 lines or more; short files and exported models gain nothing",
    )
    flags.number(
        "threshold",
        None,
        "flexible attention: do not score positions with a larger penalty; 0: score all; by "
        "default as in the run",
        lower_bound=0.0,
    )


def define_search(flags: Flags) -> None:
    """Defines the flags of beam search."""
    flags.group("Search")
    flags.integer("beam_size", 10, "hypotheses kept per source", lower_bound=1)
    flags.number("length_penalty", 0.0, "exponent of the GNMT length penalty")


def define_sampling(flags: Flags, samples: str) -> None:
    """Defines the flags of sampling.

    Args:
        flags: the command's flags.
        samples: help text of `--sample`.
    """
    flags.group("Sampling")
    flags.integer("sample", None, samples, lower_bound=1)
    flags.number("temperature", 1.0, "divide the logits by this; below 1 favours probable tokens")
    flags.integer("top_k", 0, "draw from this many of the most probable tokens; 0: from all")
    flags.number(
        "top_p", 1.0, "draw from the most probable tokens that together have this probability"
    )


def sampling_of(arguments: Arguments) -> Any:
    """The `Sampling` that the flags describe; None without `--sample`.

    Raises:
        ValueError: for a number out of range, or another flag of sampling without `--sample`.
    """
    from seq2seq_memattn.search.rules import Sampling

    if arguments.sample is not None:
        return Sampling(arguments.temperature, arguments.top_k, arguments.top_p)
    for name in ("temperature", "top_k", "top_p", "sample_seed"):
        if name in arguments.given:
            raise ValueError(f"--{name}: expected --sample too")
    return None


def define_batch_size(flags: Flags) -> None:
    """Defines `--batch_size`, for commands that read a file in batches."""
    flags.integer("batch_size", 100, "sources per batch", lower_bound=1)


def load_run(arguments: Arguments, precision: Precision | None = None) -> Any:
    """Loads the run that the flags name.

    Prints a note for each damaged checkpoint that was skipped, and for a precision that is slow on
    this processor.

    Args:
        arguments: the command's arguments.
        precision: replaces the flag's value if given.
    """
    from seq2seq_memattn.runs import directory

    precision = precision or arguments.precision
    report_slow_products(precision)
    run = directory.load_run(
        Path(arguments.run_dir), arguments.checkpoint, arguments.threshold, precision
    )
    for problem in run.problems:
        print_note(f"{problem}; the one before it is used")
    return run


def make_translator(
    arguments: Arguments,
    n_best: int = 1,
    return_alignments: bool = False,
    sampling: Any = None,
    seed: int = 0,
) -> tuple[Any, Any]:
    """Loads the run that the flags name; returns it and its `Translator`."""
    from seq2seq_memattn.runs.translator import Translator

    run = load_run(arguments)
    return run, Translator(
        run,
        arguments.beam_size if sampling is None else n_best,
        n_best,
        arguments.length_penalty,
        arguments.max_source_length,
        return_alignments,
        sampling,
        seed,
    )


def report_slow_products(*precisions: str) -> None:
    """Prints a note if bfloat16 products will be slow: the processor has no units for them."""
    if "bfloat16_products" not in precisions:
        return
    from seq2seq_memattn.compute.backend import gpu_name
    from seq2seq_memattn.compute.hardware import has_bfloat16_units

    if gpu_name() is None and has_bfloat16_units() is False:
        print_note(
            "bfloat16_products will be slow: this processor has no units for bfloat16; float32 is "
            "faster here"
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
            f"{source} and {target}: expected as many lines, got {len(sources)} and {len(targets)}"
        )
    return sources, targets
