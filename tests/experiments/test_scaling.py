import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from experiments.scaling import all_reduce_seconds
from tests.commands import run_python
from tests.experiments.conftest import TINY

LINKS = SimpleNamespace(
    gpus_per_machine=8,
    gpu_bandwidth=100.0,
    gpu_latency=5.0,
    network_bandwidth=10.0,
    network_latency=20.0,
)


def test_the_slowest_link_bounds_an_all_reduce() -> None:
    assert all_reduce_seconds(10**9, 1, LINKS) == 0
    assert all_reduce_seconds(10**9, 2, LINKS) == pytest.approx(0.01 + 2 * 5e-6)
    assert all_reduce_seconds(10**9, 8, LINKS) == pytest.approx(0.0175 + 14 * 5e-6)
    assert all_reduce_seconds(10**9, 16, LINKS) == pytest.approx(0.1875 + 30 * 20e-6)


@pytest.mark.slow
def test_it_times_the_shares_of_a_batch_and_gives_efficiencies(tmp_path: Path) -> None:
    output = tmp_path / "scaling.json"
    sizes = ["--source_vocab_size=50", "--target_vocab_size=60"]
    options = [*sizes, "--length=6", "--repeats=2", "--replicas=2,64", f"--output={output}"]
    done = run_python("-m", "experiments.scaling", *TINY, *options)
    assert done.returncode == 0, done.stderr
    result = json.loads(output.read_text())
    assert result["batch_size"] == 16
    assert [(row["replicas"], row["rows_each"]) for row in result["rows"]] == [
        (1, 16),
        (2, 8),
        (64, 1),
    ]
    first, two, many = result["rows"]
    assert first["strong_efficiency"] == first["weak_efficiency"] == 1
    for row in (two, many):
        assert row["compute_seconds"] > 0
        assert row["weak_efficiency"] == pytest.approx(
            first["compute_seconds"] / (first["compute_seconds"] + row["all_reduce_seconds"])
        )
    assert 0 < many["strong_efficiency"] < two["strong_efficiency"]
    # Weights of the embeddings and of all else, four bytes each.
    assert result["gradient_bytes"] % 4 == 0
    assert result["gradient_bytes"] > 4 * 8 * (50 + 60)
