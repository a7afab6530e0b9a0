"""Exports a run for serving.

Writes the next version (EXPORT_DIR/1, then EXPORT_DIR/2 and so on): a SavedModel that takes and
returns text, a model card and the run's configuration. `memattn serve`, TensorFlow Serving and any
program with tensorflow and tensorflow_text can use it.
"""

import dataclasses
import time
from pathlib import Path

from seq2seq_memattn.commands.shared import cli, run_flags

MAX_SOURCE_LENGTH = 256  # tokens, with the end token; the answer says which sources were cut


def define(flags: cli.Flags) -> None:
    """The flags of this command."""
    run_flags.define_run(flags, together=True)
    run_flags.define_search(flags)
    run_flags.define_sampling(
        flags, "add the signature `sample`, which draws this many translations of each text"
    )
    flags.group("Export")
    flags.string(
        "export_dir",
        None,
        "folder of the model's versions; the export becomes the next version",
        required=True,
    )
    flags.integer(
        "n_best",
        None,
        "translations per source; by default 5, or --beam_size if that is less",
        lower_bound=1,
    )
    flags.integer(
        "max_length",
        None,
        "longest translation in tokens, end token included; by default twice the length of its "
        "source plus 10",
        lower_bound=1,
    )
    flags.boolean(
        "prefix",
        False,
        "add the signature `complete`, which translates texts with a given prefix",
    )
    # The limit bounds a server's work for one text, and the size of its answer.
    flags.change_default("max_source_length", MAX_SOURCE_LENGTH)
    flags.string("example", "", "a source sentence for the web page and the warm-up")


def main(arguments: cli.Arguments) -> None:
    """Exports the run that the flags name."""
    import tensorflow as tf

    # A graph traced with a GPU visible may need cuDNN, which CPU servers do not have.
    tf.config.set_visible_devices([], "GPU")
    from seq2seq_memattn.compute.precision import INT8
    from seq2seq_memattn.serving.export.options import ExportOptions, default_n_best
    from seq2seq_memattn.serving.export.saved_model import export
    from seq2seq_memattn.serving.layout import num_bytes

    started = time.perf_counter()
    run_flags.sampling_of(arguments)  # raises if the flags of sampling are wrong
    # With int8_products, matrices are rounded only when they are written; products are in float32.
    in_int8 = arguments.precision == INT8
    run = run_flags.load_runs(arguments, "float32" if in_int8 else arguments.precision)
    names = [field.name for field in dataclasses.fields(ExportOptions)]
    given = {name: getattr(arguments, name) for name in names if hasattr(arguments, name)}
    search = ExportOptions(
        **given
        | {
            "n_best": arguments.n_best or default_n_best(arguments.beam_size),
            "num_samples": arguments.sample or 0,
            "banned": run_flags.banned_ids(arguments.banned, run.target_vocabulary),
        }
    )
    folder = export(run, Path(arguments.export_dir), search, arguments.precision, arguments.example)
    cli.print_result(
        {
            "export_dir": arguments.export_dir,
            "version": int(folder.name),
            "update": run.update,
            "mebibytes": round(num_bytes(folder) / 2**20, 1),
            "seconds": round(time.perf_counter() - started, 1),
        }
    )
