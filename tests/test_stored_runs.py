"""Runs trained by earlier code can be read and decode as before (stored_runs/README.md)."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seq2seq_memattn.runs.directory import load_run
from tests.marks import quick, slow
from tests.running import run_here, run_python
from tests.stored_runs.decoding import SEARCHES, Record, decoded
from tests.stored_runs.make import RUNS, STORED
from tests.tolerances import assert_close

ON_JAX = """
import os
import sys

sys.modules["tensorflow"] = None  # importing it fails from here on
os.environ["KERAS_BACKEND"] = "jax"

import json
from pathlib import Path

from tests.stored_runs.decoding import decoded

folder, what, *runs = sys.argv[1:]
print(json.dumps({run: decoded(Path(folder, run), *what.split()) for run in runs}))
"""


def assert_decoded_as_before(run: str, found: list[Record]) -> None:
    """Asserts that texts and ids equal the stored ones, and that log-probabilities are close."""
    text = (STORED / run / "translations.json").read_text(encoding="utf-8")
    stored = [
        {name: record[name] for name in ours}
        for record, ours in zip(json.loads(text), found, strict=True)
    ]
    (sentences, numbers), (expected, expected_numbers) = map(_parts, (found, stored))
    assert sentences == expected
    assert_close(np.array(numbers), np.array(expected_numbers))


def _parts(records: list[Record]) -> tuple[list[Any], list[float]]:
    """The texts and ids, which must be equal, and the log-probabilities, which are rounded."""
    translations = [one for record in records for name in SEARCHES for one in record.get(name, [])]
    numbers = [one["log_prob"] for one in translations]
    numbers += [record["score"] for record in records if "score" in record]
    return [(one["text"], one["tokens"]) for one in translations], numbers


@pytest.mark.parametrize("run", RUNS)
def test_a_stored_run_translates_and_scores_as_it_did(run: str) -> None:
    assert_decoded_as_before(run, decoded(STORED / run, "beam", "score"))


@pytest.mark.parametrize("run", quick(RUNS, "words_flexible"))
def test_a_stored_run_translates_greedily_as_it_did(run: str) -> None:
    assert_decoded_as_before(run, decoded(STORED / run, "greedy"))


@pytest.mark.parametrize(
    ("runs", "what"), [(["words_k_memory"], "beam score"), *slow((list(RUNS), ""))]
)
def test_stored_runs_do_the_same_on_jax(runs: list[str], what: str) -> None:
    done = run_python("-c", ON_JAX, str(STORED), what, *runs)
    assert done.returncode == 0, done.stderr.decode()[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert list(found) == runs
    for run, records in found.items():
        assert_decoded_as_before(run, records)


def test_an_unfinished_run_goes_on_as_it_would_have(tmp_path: Path) -> None:
    shutil.copytree(STORED / "unfinished", tmp_path / "work")
    folder = tmp_path / "work"
    done = run_here(
        "experiments.train",
        f"--config={folder / 'run' / 'config.json'}",
        f"--data_dir={folder / 'data'}",
        f"--run_dir={folder / 'run'}",
        "--num_updates=12",
    )
    assert done.returncode == 0, done.stderr.decode()[-3000:]
    trained, expected = (
        load_run(run_dir, checkpoint).model.get_weights()
        for run_dir, checkpoint in ((folder / "run", "latest"), (folder / "run", "after.npz"))
    )
    assert_close(trained, expected)
