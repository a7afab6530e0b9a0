"""How much faster K-memory decodes.

Collects all ratios of speeds, grouped by what they compare, from files that other studies and
`compare_peers` have written.
"""

from pathlib import PurePath
from typing import Any

from experiments.reproduction.pages import commit_in_words, markdown_table
from experiments.reproduction.results import Result, Results, grouped, read_json
from experiments.reproduction.study import Study
from experiments.studies._copy_claims import time_over
from seq2seq_memattn.presets.copy_task import LENGTHS

OURS, BAHDANAU = "k_memory:64", "bahdanau"
TABLES = {
    **{f"table1/small/decoding_l{length}.json": "256 units, 0 to L tokens" for length in LENGTHS},
    "table3/small/decoding.json": "512 units, 16,000 subwords, newstest2015",
}
DECODING = [
    f"decoding/small/{part}.json"
    for part in ("by_length", "attentions", "growth", "folding", "parts", "formats", "graphs")
]
# Files of `compare_peers`; each has one shape, or one shape for each length.
PEERS = {
    "speed/decoding_against_peers.json": "256 units, 1 to L tokens",
    "speed/int8_200_against_peers.json": "256 units, 1 to L, another machine",
    "speed/news_against_peers.json": "512 units, 16,000 subwords, mean L",
    "speed/int8_512_against_peers.json": "512 units, 16,000 subwords, mean L, another machine",
    "speed/single_256_beam_1_against_peers.json": "256 units, one sentence, greedy",
    "speed/single_256_beam_10_against_peers.json": "256 units, one sentence",
    "speed/single_512_beam_1_against_peers.json": "512 units, one sentence, greedy",
    "speed/single_512_beam_10_against_peers.json": "512 units, one sentence",
}
HEADER = ("sources", "L", "K = 64 over Bahdanau", "least to most", "hardware", "commit", "file")
PEERS_HEADER = (
    *("sources", "L", "system", "K = 64 over it", "Bahdanau over it", "K = 64 over Bahdanau"),
)

INTRODUCTION = """
How much faster does K-memory decode than attention over the whole source?
The first table compares K = 64 with this project's own Bahdanau attention. All
other code is the same, so the ratio is the gain of the memory itself. The second table compares
both with a PyTorch model that we wrote ("pytorch bahdanau"), OpenNMT-py and TensorFlow Addons. The
lead of this project's Bahdanau attention over the PyTorch model comes from the implementation; the
rest of K-memory's lead comes from the memory. OpenNMT-py also has another attention and half the
encoder units. Figures are ratios of speeds: above 1 is faster. Sources of "exactly L" tokens favour
a fixed-size memory more than sources of "0 to L" or "1 to L" tokens, which are half as long on
average. Beam size 10, batches of 128, float32 and XLA, unless a row says otherwise. "Plain graph"
is TensorFlow without XLA, as in exports and in `beam_search` without `jit_compile`.
"""


def results(study: Study) -> list[Result]:
    """The ratios from all files that exist."""
    folder = study.results_dir.parent.parent
    found = []
    for name, what in TABLES.items():
        if (folder / name).exists():
            found.append(_over_bahdanau(read_json(folder / name), what, name))
    for name in DECODING:
        if (folder / name).exists():
            timed = read_json(folder / name)
            shapes = grouped(
                [row for row in timed["rows"] if row["folded"] == "auto"],
                lambda row: (_sources(row), row["length"]),
            )
            found += [
                _over_bahdanau({**timed, "rows": rows}, what, name)
                for (what, _), rows in shapes.items()
            ]
    for name, what in PEERS.items():
        if (folder / name).exists():
            found += _over_peers(read_json(folder / name), what, name)
    return [{**one, "name": f"{one['file']} {i}"} for i, one in enumerate(found)]


def _sources(row: Result) -> str:
    """The sources of a row of the decoding study, and how they were decoded."""
    tokens = "exactly L" if row["mode"] == "exact" else "0 to L"
    products = ", bfloat16" if row["precision"] == "bfloat16_products" else ""
    return f"256 units, {tokens} tokens{products}{'' if row['jit_compile'] else ', plain graph'}"


def _over_bahdanau(timed: dict[str, Any], what: str, file: str) -> Result:
    """The ratio of K = 64 over Bahdanau, from times of one shape."""
    by_name = {row["attention"]: row for row in timed["rows"]}
    ours, other = by_name[OURS]["all_seconds"], by_name[BAHDANAU]["all_seconds"]
    ratio = time_over(timed, BAHDANAU, OURS)
    span = (min(other) / max(ours), max(other) / min(ours))
    made = {key: timed[key] for key in ("hardware", "commit")}
    length = by_name[OURS].get("length", "-")
    return {**made, "what": what, "length": length, "ratio": ratio, "span": span, "file": file}


def _over_peers(compared: dict[str, Any], what: str, file: str) -> list[Result]:
    """The ratios over every other system in float32 at each length, from one file."""
    found = []
    for lengths in dict.fromkeys(row["lengths"] for row in compared["summary"]):
        speeds = {
            row["system"]: row["tokens_per_second"]
            for row in compared["summary"]
            if row["lengths"] == lengths and "+" not in row["system"]
        }
        ours, own = speeds.get(f"ours {OURS}"), speeds.get(f"ours {BAHDANAU}")
        if ours is None:  # `compare_peers` has not measured it yet
            continue
        found += [
            {
                "what": what,
                "length": lengths.partition("+-")[0],
                "system": system,
                "ratios": (ours / speed, own and own / speed, own and ours / own),
                "hardware": compared["hardware"],
                "commit": compared["commit"],
                "file": file,
            }
            for system, speed in speeds.items()
            if not system.startswith("ours ")
        ]
    return found


def tables(found: Results) -> str:
    """Both tables and the files behind them."""
    own = [
        (
            one["what"],
            str(one["length"]),
            f"{one['ratio']:.2f}",
            f"{one['span'][0]:.2f} to {one['span'][1]:.2f}",
            one["hardware"],
            commit_in_words(one["commit"]),
            PurePath(one["file"]).stem,
        )
        for one in found
        if "ratio" in one
    ]
    others = [
        (
            *(one["what"], one["length"], one["system"]),
            *("-" if ratio is None else f"{ratio:.2f}" for ratio in one["ratios"]),
        )
        for one in found
        if "ratios" in one
    ]
    parts = [
        "## Over this project's Bahdanau attention",
        markdown_table(HEADER, own),
        "## Over other systems",
        markdown_table(PEERS_HEADER, others),
        "\n".join(
            f"* [{file}]({file}): {one['hardware']}, commit {commit_in_words(one['commit'])}"
            for file, one in {one["file"]: one for one in found}.items()
        ),
    ]
    return "\n\n".join(parts) + "\n"
