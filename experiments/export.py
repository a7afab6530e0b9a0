"""Exports a run for serving: python -m experiments.export --run_dir=D --export_dir=D.

Writes the next version, EXPORT_DIR/1, /2 and so on: a SavedModel that takes and gives text, with a
model card and the run's configuration; for `experiments.serve`, for TensorFlow Serving, and for all
that have tensorflow and tensorflow_text.
"""

import time
from pathlib import Path

from absl import flags

from experiments import cli, decoding_flags

MAX_SOURCE_LENGTH = 256  # tokens, with the end token; what is cut is said in the answer


def main(arguments: list[str]) -> None:
    """Exports from flags."""
    del arguments
    import tensorflow as tf

    # What is traced where a GPU is seen may ask for cuDNN, which servers on CPUs do not have.
    tf.config.set_visible_devices([], "GPU")
    from seq2seq_memattn.serving.export import export
    from seq2seq_memattn.serving.serving_graph import SearchOptions

    options = flags.FLAGS
    started = time.perf_counter()
    search = SearchOptions(
        options.beam_size,
        options.n_best,
        options.length_penalty,
        options.max_length,
        options.max_source_length,
    )
    run = decoding_flags.load_run()
    folder = export(run, Path(options.export_dir), search, options.precision, options.example)
    cli.print_result(
        {
            "export_dir": options.export_dir,
            "version": int(folder.name),
            "update": run.update,
            "mebibytes": round(
                sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 2**20, 1
            ),
            "seconds": round(time.perf_counter() - started, 1),
        }
    )


if __name__ == "__main__":
    decoding_flags.define()
    flags.DEFINE_string("export_dir", None, "where the model's versions are", required=True)
    flags.DEFINE_integer("n_best", 5, "translations per source", lower_bound=1)
    flags.DEFINE_integer(
        "max_length",
        None,
        "tokens of a translation at most, end token included; by default twice those of its source "
        "and 10 more",
        lower_bound=1,
    )
    # What a server computes and answers for one text is bounded by it.
    flags.FLAGS.set_default("max_source_length", MAX_SOURCE_LENGTH)
    flags.DEFINE_string("example", "", "a source for those who try the model out")
    cli.run(main)
