"""The flags of decoding that evaluate and translate share."""

from pathlib import Path
from typing import Any

from absl import flags

from experiments import cli


def define() -> None:
    """Defines the flags; call it in a command's own file only."""
    flags.DEFINE_string("run_dir", None, "run directory of a trained model", required=True)
    flags.DEFINE_integer("beam_size", 10, "hypotheses kept per source", lower_bound=1)
    flags.DEFINE_integer("batch_size", 100, "sources decoded at a time", lower_bound=1)
    flags.DEFINE_float("length_penalty", 0.0, "exponent of the GNMT length penalty")
    flags.DEFINE_integer(
        "max_source_length",
        None,
        "sources are cut here, in tokens with the end token",
        lower_bound=1,
    )


def make_translator(n_best: int = 1, return_alignments: bool = False) -> tuple[Any, Any]:
    """The run and its `Translator`, from the flags."""
    from seq2seq_memattn.training.run_directory import load_run
    from seq2seq_memattn.translator import Translator

    options = flags.FLAGS
    run = load_run(Path(options.run_dir))
    return run, Translator(
        run,
        options.beam_size,
        n_best,
        options.length_penalty,
        options.max_source_length,
        return_alignments,
    )


def report_cut(translator: Any) -> None:
    """Says once how many sources were too long."""
    if translator.num_cut:
        cli.print_note(f"{translator.num_cut} sources were cut at {translator.limit} tokens")
