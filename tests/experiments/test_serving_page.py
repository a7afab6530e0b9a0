"""The page of what serving takes."""

from pathlib import Path
from typing import Any

from experiments.records import write_json
from experiments.serving_page import make_page

MADE = {"command": "python -m C", "commit": "0123456789", "hardware": "H, 2 cores"}


def load(clients: int, speed: float, **more: Any) -> dict[str, Any]:
    times = {"p50_ms": 10.4, "p95_ms": 1234.5, "p99_ms": 99.9}
    row = {"model": "m", "beam_size": 10, "mode": "load", "clients": clients, "errors": 0}
    return {
        **row,
        **times,
        "requests": 6000,
        "sentences_per_second": speed,
        "memory_mib": [1131, 1147],
        **more,
    }


def test_the_page_has_load_singles_and_files(tmp_path: Path) -> None:
    single = {"model": "m", "beam_size": 10, "p95_ms": 9.0}
    rows = [
        load(1, 30.0),
        load(64, 75.0, version_at_end=2),
        {**single, "mode": "single, HTTP", "p50_ms": 8.06, "overhead_ms": 1.94},
        {**single, "mode": "single, SavedModel", "p50_ms": 6.0},
        {
            **{"model": "m", "mode": "file", "sentences": 1000, "sentences_per_second": 100.0},
            **{"different": 1, "near_ties": 1},
        },
    ]
    write_json(tmp_path / "serving" / "k.json", {**MADE, "rows": rows})
    lines = make_page(tmp_path).splitlines()
    latencies = "10 | 1,234 | 100"
    for line in (
        f"| m | 1 | 6,000 | 0 | 30.0 | 30% | {latencies} | 1,131 to 1,147 |",
        f"| m | 64, a version replaced | 6,000 | 0 | 75.0 | 75% | {latencies} | 1,131 to 1,147 |",
        "| m | 10 | 8.1 | 9.0 | 6.0 | 9.0 | 1.9 |",
        "| m | 1,000 | 100.0 | 1 | 1 |",
        "m: H, 2 cores, commit 0123456789; `python -m C`",
    ):
        assert line in lines
