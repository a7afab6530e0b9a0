import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from experiments.records import write_json
from experiments.reproduce import SUBJECTS, write_results
from experiments.scaling import ESTIMATE, all_reduce_seconds
from tests.conftest import TINY
from tests.running import run_here

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
    options = [
        *sizes,
        "--length=6",
        "--repeats=2",
        "--replicas=2,64",
        "--speedups=1,100",
        f"--output={output}",
    ]
    done = run_here("experiments.scaling", *TINY, *options)
    assert done.returncode == 0, done.stderr
    result = json.loads(output.read_text())
    assert result["batch_size"] == 16
    shares = [(1, 16), (2, 8), (64, 1)]
    assert [(row["replicas"], row["rows_each"]) for row in result["rows"]] == 2 * shares
    first, two, many, *faster = result["rows"]
    for slow, fast in zip((first, two, many), faster, strict=True):
        assert fast["speedup"] == 100
        assert fast["compute_seconds"] == pytest.approx(slow["compute_seconds"] / 100)
        assert fast["all_reduce_seconds"] == slow["all_reduce_seconds"]
    assert first["strong_efficiency"] == first["weak_efficiency"] == 1
    whole = first["compute_seconds"]
    for row in (two, many):
        assert row["compute_seconds"] > 0 and row["all_reduce_seconds"] > 0
        seconds = row["compute_seconds"] + row["all_reduce_seconds"]
        assert row["strong_efficiency"] == pytest.approx(whole / (row["replicas"] * seconds))
        assert row["weak_efficiency"] == pytest.approx(whole / (whole + row["all_reduce_seconds"]))
    # Weights of the embeddings and of all else, four bytes each.
    assert result["gradient_bytes"] % 4 == 0
    assert result["gradient_bytes"] > 4 * 8 * (50 + 60)


def test_the_page_has_the_estimate_and_what_it_assumes(tmp_path: Path) -> None:
    of = SUBJECTS["scaling"].study("small", [], tmp_path, tmp_path / "results")
    row = {
        "speedup": 30,
        "replicas": 8,
        "rows_each": 16,
        "compute_seconds": 0.0123,
        "all_reduce_seconds": 0.00456,
        "strong_efficiency": 0.517,
        "weak_efficiency": 0.925,
    }
    assumed = {**vars(LINKS), "length": 25}
    made = {"command": "python -m C", "commit": "0123456789", "hardware": "H, 2 cores"}
    found = {**made, "gradient_bytes": 98_700_000, "batch_size": 128, "assumed": assumed}
    write_json(of.results_dir / ESTIMATE, {**found, "rows": [row]})
    results = SUBJECTS["scaling"].extend(of)
    write_results("scaling", "small", of, results, tmp_path / "results")
    page = (tmp_path / "results" / "scaling.md").read_text()
    assert "| 30 x | 8 | 16 | 12.3 | 4.56 | 52 % | 92 % |" in page
    assert "Gradients of 98.7 MB, batches of 128 sentences of 25 tokens" in page
    assert "links of 100 GB/s and 5 microseconds inside, 10 GB/s and 20 microseconds" in page
