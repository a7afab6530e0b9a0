"""Translations and scores of a stored run's sentences, for `make.py` and for the tests."""

from pathlib import Path
from typing import Any

from seq2seq_memattn.runs.directory import Run, load_run
from seq2seq_memattn.runs.pair_scorer import PairScorer
from seq2seq_memattn.runs.translator import SourceReader, Translator, encode_lines
from seq2seq_memattn.search.options import SearchOptions
from seq2seq_memattn.text.files import read_lines

SEARCHES = {"greedy": (1, 1), "beam": (4, 2)}  # beam_size and n_best
BATCH_SIZE = 100  # the default of the commands; one batch

Record = dict[str, Any]


def decoded(directory: Path, *names: str) -> list[Record]:
    """Translates the sources of a stored run, and scores its pairs.

    Args:
        directory: the run's directory, with `sources.txt` and `targets.txt`.
        names: results to return: names of `SEARCHES`, and "score"; by default all of them.

    Returns:
        For each pair, the results by name: for a search, see `translations`; "score" is the
        log-probability of the target in nats.
    """
    run = load_run(directory)
    lines, targets = (read_lines(directory / f"{side}.txt") for side in ("sources", "targets"))
    found = {
        name: scores(run, lines, targets)
        if name == "score"
        else translations(run, lines, *SEARCHES[name])
        for name in names or (*SEARCHES, "score")
    }
    return [dict(zip(found, values, strict=True)) for values in zip(*found.values(), strict=True)]


def translations(run: Run, lines: list[str], beam_size: int, n_best: int) -> list[Any]:
    """The n best translations of each line, as by `translate`: text, ids, log-probability."""
    sources = run.text_form.as_trained(lines, run.directory)
    found = Translator(run, SearchOptions(beam_size, n_best))(sources, BATCH_SIZE)
    return [[_record(run, *translation) for translation in of_line] for of_line in found]


def _record(run: Run, text: str, hypothesis: Any) -> Record:
    return {
        "text": run.text_form.readable([text])[0],
        "tokens": hypothesis.tokens.tolist(),
        "log_prob": round(hypothesis.log_prob, 6),
    }


def scores(run: Run, lines: list[str], targets: list[str]) -> list[Any]:
    """The log-probability of each target given its line; targets have the corpus's form."""
    sources = SourceReader(run)(run.text_form.as_trained(lines, run.directory), "sources")
    ids = encode_lines(run.target_vocabulary, targets, "targets")
    return [round(float(score), 6) for score in PairScorer(run.model)(sources, ids, BATCH_SIZE)]
