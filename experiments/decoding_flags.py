"""What the commands that use a trained run share: their flags, the run, pairs of files."""

from pathlib import Path
from typing import Any, get_args

from absl import flags

from experiments import cli
from seq2seq_memattn.config import Precision
from seq2seq_memattn.text.files import read_lines

flags.disclaim_key_flags()  # --help lists a command's flags as the command's, not as this module's


def define_run() -> None:
    """Defines the flags of every command that reads sources; call it in a command's own file."""
    flags.DEFINE_string("run_dir", None, "run directory of a trained model", required=True)
    flags.DEFINE_string(
        "checkpoint",
        "best",
        "weights of the run: best, latest, or a file of it, such as average.npz",
    )
    flags.DEFINE_integer(
        "max_source_length",
        None,
        "sources are cut here, in tokens with the end token",
        lower_bound=1,
    )
    flags.DEFINE_enum(
        "precision",
        "float32",
        list(get_args(Precision)),
        "dtype policy, whatever the run was trained with; bfloat16_products rounds the operands of "
        "products to bfloat16: faster where XLA compiles the search, from 64 lines on, for a CPU "
        "with units for bfloat16; elsewhere, as in exported models, operands are rounded and "
        "multiplied as float32, with no gain in speed",
    )
    flags.DEFINE_float(
        "threshold",
        None,
        "flexible attention: positions with larger penalties are not scored, 0: all; by default as "
        "the run says",
        lower_bound=0.0,
    )


def define() -> None:
    """Defines the flags of `define_run` and those of search."""
    define_run()
    flags.DEFINE_integer("beam_size", 10, "hypotheses kept per source", lower_bound=1)
    flags.DEFINE_float("length_penalty", 0.0, "exponent of the GNMT length penalty")


def define_batch_size() -> None:
    """Defines the flag of commands that read a file in batches of one size."""
    flags.DEFINE_integer("batch_size", 100, "sources taken at a time", lower_bound=1)


def load_run(precision: Precision | None = None) -> Any:
    """The run that the flags name.

    Notes on standard error name damaged checkpoints that were passed over, and a precision that
    will be slow on this processor.

    Args:
        precision: in place of the flag.
    """
    from seq2seq_memattn.runs import directory

    options = flags.FLAGS
    precision = precision or options.precision
    report_slow_products(precision)
    run = directory.load_run(
        Path(options.run_dir), options.checkpoint, options.threshold, precision
    )
    for problem in run.problems:
        cli.print_note(f"{problem}; the one before it is used")
    return run


def make_translator(n_best: int = 1, return_alignments: bool = False) -> tuple[Any, Any]:
    """The run and its `Translator`, from the flags."""
    from seq2seq_memattn.runs.translator import Translator

    options, run = flags.FLAGS, load_run()
    return run, Translator(
        run,
        options.beam_size,
        n_best,
        options.length_penalty,
        options.max_source_length,
        return_alignments,
    )


def report_slow_products(*precisions: str) -> None:
    """Notes that products of bfloat16 will be slow, if the processor has no units for them."""
    if "bfloat16_products" not in precisions:
        return
    from seq2seq_memattn.compute.backend import gpu_name
    from seq2seq_memattn.compute.hardware import has_bfloat16_units

    if gpu_name() is None and has_bfloat16_units() is False:
        cli.print_note(
            "bfloat16_products will be slow: this processor has no units for bfloat16; float32 is "
            "faster here"
        )


def report_cut(sources: Any) -> None:
    """Says once how many sources a `SourceReader` found too long."""
    if sources.num_cut:
        cli.print_note(f"{sources.num_cut} sources were cut at {sources.limit} tokens")


def read_pair(source: str, target: str) -> tuple[list[str], list[str]]:
    """Two files of as many lines; raises ValueError with both counts if they differ."""
    sources, targets = read_lines(source), read_lines(target)
    if len(sources) != len(targets):
        raise ValueError(
            f"{source} and {target}: expected as many lines, got {len(sources)} and {len(targets)}"
        )
    return sources, targets
