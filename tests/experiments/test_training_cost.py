import json
from pathlib import Path

import pytest

from tests.conftest import TINY
from tests.running import run_here


@pytest.mark.slow
def test_it_compares_updates_and_finds_the_shares_of_the_rest(tmp_path: Path) -> None:
    data_dir, output = tmp_path / "data", tmp_path / "cost.json"
    made = ["--max_length=6", f"--output_dir={data_dir}", "--num_train=60", "--num_valid=12"]
    assert run_here("data_prep.copy_task", *made).returncode == 0
    done = run_here(
        "experiments.training_cost",
        *TINY,
        "--config=copy_20_k4",
        f"--data_dir={data_dir}",
        f"--run_dir={tmp_path / 'run'}",
        f"--output={output}",
        "--minutes=0.05",
        "--repeats=1",
        "--checkpoint_minutes=0",
        "--validate_every=1000000",
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(output.read_text())
    (ratio,) = result["ratio"]["ratios"]
    assert ratio == result["ratio"]["ratio"] > 0
    training = result["training"]
    assert training["updates"] > 1
    assert training["checkpoints"] > 1  # one after each update
    assert training["seconds"] >= 3  # as was asked for
    assert set(training["shares"]) == {"checkpoints", "log and progress bar"}
    assert all(share > 0 for share in training["shares"].values())
    assert sum(training["shares"].values()) < 1
