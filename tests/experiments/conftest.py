"""A data directory and a run, made as a user makes them."""

import json

import pytest

from tests.commands import jobs_here, run_here

TINY = [
    "--embedding_dim=8",
    "--encoder_units=8",
    "--decoder_units=8",
    "--batch_size=16",
    "--num_updates=4",
    "--validate_every=2",
    "--valid_examples=8",
    "--beam_size=2",
    "--log_every=1",
    "--max_source_length=7",
    "--position_encoding=mean_one",
]


@pytest.fixture(scope="session")
def work(tmp_path_factory):
    """A data directory and a trained run, which tests leave as they are."""
    folder = tmp_path_factory.mktemp("work")
    made = run_here(
        "data_prep.copy_task",
        "--max_length=6",
        "--num_train=100",
        "--num_valid=20",
        f"--output_dir={folder / 'data'}",
    )
    assert made.returncode == 0, made.stderr
    trained = run_here(
        "experiments.train",
        "--config=copy_20_k4",
        f"--data_dir={folder / 'data'}",
        f"--run_dir={folder / 'run'}",
        *TINY,
    )
    assert trained.returncode == 0, trained.stderr
    result = json.loads(trained.stdout.splitlines()[-1])
    assert result["update"] == 4 and result["reason"] == "updates"
    return folder


@pytest.fixture
def in_this_process():
    """What `reproduce` and other commands start runs in this process."""
    with jobs_here():
        yield
