"""Measures the quality of int8 translation: python -m experiments.benchmarks.int8_quality.

Translates a test set with each run in `float32` and in `int8_products`, both by search and with
exported models. Reports BLEU of tokenised text, standard BLEU and chrF, how many translations
differ from those in float32, and how log-probabilities change where translations are the same.
Sources and references must have the form of the training text (tokenisation and case).
"""

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from experiments.reproduction.results import portable, report
from seq2seq_memattn.commands.shared import cli, run_flags
from seq2seq_memattn.config import DecodingPrecision
from seq2seq_memattn.notes import print_note

PRECISIONS: tuple[DecodingPrecision, ...] = ("float32", "int8_products")
BATCH_SIZE = 100


class Decoded(NamedTuple):
    """Translations made by one way of decoding.

    Fields:
        texts: a translation of each source.
        log_probs: float [lines], their log-probabilities in nats.
    """

    texts: list[str]
    log_probs: Any


def search(run: Any, sources: Sequence[str], beam_size: int) -> Decoded:
    """Translates with a run; an empty source counts as log-probability 0."""
    from seq2seq_memattn.runs.translator import Translator
    from seq2seq_memattn.search.options import SearchOptions

    found = Translator(run, SearchOptions(beam_size))(sources, BATCH_SIZE)
    best = [translations[0] for translations in found]
    log_probs = [one.hypothesis.log_prob if one.hypothesis else 0.0 for one in best]
    return Decoded([one.text for one in best], np.array(log_probs))


def exported(
    run: Any, sources: Sequence[str], precision: str, beam_size: int
) -> tuple[Decoded, float]:
    """Exports a float32 run and translates with the export; also returns its size in MiB."""
    from seq2seq_memattn.serving.export.options import ExportOptions
    from seq2seq_memattn.serving.export.saved_model import export
    from seq2seq_memattn.serving.layout import num_bytes
    from seq2seq_memattn.serving.models.loaded_model import LoadedModel

    options = ExportOptions(beam_size=beam_size, n_best=1)
    with tempfile.TemporaryDirectory() as place:
        version = export(run, Path(place), options, precision)
        size = num_bytes(version) / 2**20
        model = LoadedModel(version)
        texts: list[str] = []
        log_probs: list[float] = []
        for first in range(0, len(sources), BATCH_SIZE):
            batch = np.array(sources[first : first + BATCH_SIZE], object)
            found = model.run("serving_default", {"text": batch})
            texts += [one.decode() for one in found["translations"][:, 0]]
            log_probs += found["log_probs"][:, 0].tolist()
    return Decoded(texts, np.array(log_probs)), size


def differences(decoded: Decoded, reference: Decoded) -> dict[str, Any]:
    """How translations and their log-probabilities differ from those of another decoding.

    Log-probabilities are compared where the translations are the same.
    """
    same = np.array([a == b for a, b in zip(decoded.texts, reference.texts, strict=True)])
    change = (decoded.log_probs - reference.log_probs)[same]
    result: dict[str, Any] = {"other_translations": int(np.sum(~same))}
    if len(change):
        result |= {
            "mean_log_prob_difference": round(float(np.mean(change)), 4),
            "mean_absolute_log_prob_difference": round(float(np.mean(np.abs(change))), 4),
            "largest_log_prob_difference": round(float(np.max(np.abs(change))), 4),
        }
    return result


def compare(
    name: str, sources: Sequence[str], references: Sequence[str], arguments: cli.Arguments
) -> list[dict[str, Any]]:
    """The rows of one run: search and export, in `float32` and in `int8_products`."""
    from seq2seq_memattn.metrics import corpus_scores
    from seq2seq_memattn.runs.directory import load_run
    from seq2seq_memattn.text.form import FormedLines

    runs = {precision: load_run(Path(name), precision=precision) for precision in PRECISIONS}
    run = runs["float32"]
    if arguments.exports and not run.text_form.is_as_written:
        raise ValueError(f"{name}: exported models take plain text; use --noexports")
    theirs = FormedLines(list(references), run.text_form)
    rows = []
    for way in ("search", "export") if arguments.exports else ("search",):
        first: Decoded | None = None
        for precision in PRECISIONS:
            print_note(f"{name}: {way}, {precision}")
            row: dict[str, Any] = {
                "run_dir": portable(name),
                "attention": run.model.config.attention,
                "update": run.update,
                "way": way,
                "precision": precision,
                "lines": len(sources),
                "beam_size": arguments.beam_size,
            }
            if way == "search":
                decoded = search(runs[precision], sources, arguments.beam_size)
            else:
                decoded, size = exported(run, sources, precision, arguments.beam_size)
                row["mebibytes"] = round(size, 1)
            ours = FormedLines(decoded.texts, run.text_form)
            for score, one in corpus_scores(ours, theirs, arguments.lowercase).items():
                row |= {score: round(one.score, 4), f"{score}_signature": one.signature}
            if first is None:
                first = decoded
            else:
                row |= differences(decoded, first)
            rows.append(row)
    return rows


def define(flags: cli.Flags) -> None:
    """The flags of this command."""
    flags.items("runs", None, "run directories", required=True)
    flags.string("source", None, "sources, one per line", required=True)
    flags.string("reference", None, "references, one per line", required=True)
    flags.boolean("lowercase", False, "ignore case in every score")
    flags.boolean("exports", True, "also compare exported models")
    flags.integer("beam_size", 10, "hypotheses per source", lower_bound=1)
    flags.string("output", None, "JSON file for the rows")


def main(arguments: cli.Arguments) -> None:
    """Compares the runs that the flags name."""
    sources, references = run_flags.read_pair(arguments.source, arguments.reference)
    rows = [row for name in arguments.runs for row in compare(name, sources, references, arguments)]
    report(rows, arguments.output)


if __name__ == "__main__":
    cli.launch(sys.modules[__name__])
