"""The page of what `serving_speed` measured, which `results_page` makes."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from experiments.records import read_json
from experiments.subject import markdown_table
from experiments.timings import origin

FOLDER = "serving"
PAGE = "serving.md"
INTRODUCTION = """
# Serving

A server of this project with a model on it, and so many clients that each send a sentence, wait for
the answer and send the next, for a minute; the load generator runs on the same cores. Lines are in
the order of the measurement: the same number of clients again shows whether memory grows, and at
last another version is exported on these cores and taken up. Memory is of the server's processes,
before and after. A file is what `translate` decodes in batches of 100, by XLA, whose compilation is
left out; the exported graph is not compiled.
"""
LOAD = (
    *("model", "clients", "requests", "errors", "sentences/s", "of a file's", "p50, ms", "p95, ms"),
    *("p99, ms", "memory, MiB"),
)
SINGLE = (
    *("model", "beam", "HTTP p50, ms", "p95", "SavedModel p50, ms", "p95"),
    "what HTTP adds, median, ms",
)
FILE = ("model", "sentences", "sentences/s", "other translations than `translate`", "near ties")

Rows = Sequence[dict[str, Any]]


def make_page(results_dir: Path) -> str:
    """The page of all files in the folder of serving."""
    contents = [read_json(path) for path in sorted((results_dir / FOLDER).glob("*.json"))]
    rows = [row for content in contents for row in content["rows"]]
    sections = [
        INTRODUCTION.strip(),
        markdown_table(LOAD, _loads(rows)),
        "One sentence after the other, over HTTP and by a call of the SavedModel in turns:",
        markdown_table(SINGLE, _singles(rows)),
        "All sentences as a file, and what the exported model gives in a process of its own:",
        markdown_table(FILE, _files(rows)),
        *(f"{_names(content['rows'])}: {origin(content)}" for content in contents),
    ]
    return "\n\n".join(sections) + "\n"


def _names(rows: Rows) -> str:
    return ", ".join(dict.fromkeys(row["model"] for row in rows))


def _of(rows: Rows, mode: str) -> list[dict[str, Any]]:
    return [row for row in rows if row["mode"] == mode]


def _loads(rows: Rows) -> Iterator[Sequence[str]]:
    speeds = {row["model"]: row["sentences_per_second"] for row in _of(rows, "file")}
    for row in _of(rows, "load"):
        before, after = row["memory_mib"]
        replaced = ", a version replaced" if "version_at_end" in row else ""
        yield (
            row["model"],
            f"{row['clients']}{replaced}",
            f"{row['requests']:,}",
            str(row["errors"]),
            f"{row['sentences_per_second']:.1f}",
            f"{row['sentences_per_second'] / speeds[row['model']]:.0%}",
            *(f"{row[name]:,.0f}" for name in ("p50_ms", "p95_ms", "p99_ms")),
            f"{before:,} to {after:,}",
        )


def _singles(rows: Rows) -> Iterator[Sequence[str]]:
    called = _of(rows, "single, SavedModel")
    for row, other in zip(_of(rows, "single, HTTP"), called, strict=True):
        times = [one[name] for one in (row, other) for name in ("p50_ms", "p95_ms")]
        yield (
            *(row["model"], str(row["beam_size"])),
            *(f"{time:.1f}" for time in times),
            f"{row['overhead_ms']:.1f}",
        )


def _files(rows: Rows) -> Iterator[Sequence[str]]:
    for row in _of(rows, "file"):
        yield (
            *(row["model"], f"{row['sentences']:,}", f"{row['sentences_per_second']:.1f}"),
            *(str(row["different"]), str(row["near_ties"])),
        )
