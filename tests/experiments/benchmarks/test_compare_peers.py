import json
import sys
from pathlib import Path
from typing import Any

import pytest

from experiments.benchmarks import compare_peers
from experiments.benchmarks.compare_peers import commands, measure, summarise
from experiments.benchmarks.peers.set_up import environment_python
from seq2seq_memattn.commands.shared import cli

PEERS = "experiments.benchmarks.peers"


def stand_in(environments: Path, name: str, script: str = "") -> Path:
    """The Python of an environment, which prints a row with its arguments, or runs a script."""
    python = environment_python(environments, name)
    python.parent.mkdir(parents=True)
    row = "{'kind': 'decode', 'lengths': '5', 'batch': 3, 'clean': True, 'tokens_per_s': 50.0}"
    script = script or f"print('note'); print(json.dumps({{**{row}, 'words': sys.argv[1:]}}))"
    python.write_text(f"#!{sys.executable}\nimport json, os, sys\n{script}\n")
    python.chmod(0o755)
    return python


def row(system: str, speed: float, clean: bool = True, lengths: str = "50") -> dict[str, Any]:
    made = {"kind": "decode", "lengths": lengths, "batch": 128, "clean": clean}
    return {"system": system, "tokens_per_s": speed, **made}


def test_each_system_has_its_command(tmp_path: Path) -> None:
    python = stand_in(tmp_path, "opennmt_py")
    found = commands(["opennmt_py:luong+full_units", "ours:k_memory:64"], tmp_path)
    luong = ["--attention", "luong", "--option", "full_units"]
    ours = ["--attention", "k_memory:64"]
    assert found == {
        "opennmt-py luong+full_units": [str(python), "-m", f"{PEERS}.opennmt_py", *luong],
        "ours k_memory:64": [sys.executable, "-m", f"{PEERS}.ours", *ours],
    }


def test_pages_know_the_labels_of_the_systems(tmp_path: Path) -> None:
    for name in ("pytorch", "opennmt_py", "tensorflow_addons"):
        stand_in(tmp_path, name)
    assert [*commands(compare_peers.SYSTEMS, tmp_path)] == [
        *("pytorch bahdanau", "opennmt-py luong", "tensorflow-addons bahdanau"),
        *("ours k_memory:64", "ours bahdanau"),
    ]


@pytest.mark.parametrize("system", ["marian:bahdanau", "pytorch", "ours:"])
def test_what_is_no_system_is_refused(system: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="--systems: expected SCRIPT:ATTENTION of ours, pytorch"):
        commands([system], tmp_path)


def test_a_missing_environment_is_named_with_what_makes_it(tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match=f"not found; install it with `python -m {PEERS}.set_up pytorch`"
    ):
        commands(["pytorch:bahdanau"], tmp_path)


def test_a_system_computes_on_the_processor_and_only_its_rows_are_read(tmp_path: Path) -> None:
    script = "print(json.dumps({'gpu': os.environ['CUDA_VISIBLE_DEVICES']})); print('a note')"
    assert measure([str(stand_in(tmp_path, "pytorch", script))]) == [{"gpu": "-1"}]


def test_a_system_that_fails_is_named_with_its_last_words(tmp_path: Path) -> None:
    python = stand_in(tmp_path, "pytorch", "sys.exit('no compiler')")
    with pytest.raises(ValueError, match="exit status 1: no compiler"):
        measure([str(python)])


def test_a_summary_has_medians_and_says_what_was_disturbed() -> None:
    rows = [row("a", 10.0), row("b", 7.0), row("a", 30.0, clean=False), row("a", 5.0, lengths="9")]
    shape = {"kind": "decode", "lengths": "50", "batch": 128}
    a, b, short = summarise(rows)
    assert a == {
        "system": "a",
        **shape,
        "tokens_per_second": 20.0,
        "rounds": [10.0, 30.0],
        "clean": False,
    }
    assert b == {
        "system": "b",
        **shape,
        "tokens_per_second": 7.0,
        "rounds": [7.0],
        "clean": True,
    }
    assert (short["lengths"], short["rounds"]) == ("9", [5.0])


def test_systems_take_turns_with_the_same_flags(tmp_path: Path) -> None:
    for name in ("pytorch", "opennmt_py"):
        stand_in(tmp_path, name)
    flags = cli.Flags()
    compare_peers.define(flags)
    output = tmp_path / "found.json"
    words = ["--systems=pytorch:bahdanau,opennmt_py:luong", f"--environments={tmp_path}"]
    compare_peers.main(flags.parse([*words, f"--output={output}", "--", "--lengths", "5"]))
    found = json.loads(output.read_text())
    assert [(one["system"], one["round"]) for one in found["rows"]] == [
        (system, turn) for turn in (0, 1) for system in ("pytorch bahdanau", "opennmt-py luong")
    ]
    for one in found["rows"]:
        assert one["words"][:2] == ["-m", f"{PEERS}.{one['system'].split()[0].replace('-', '_')}"]
        assert one["words"][-2:] == ["--lengths", "5"]
    assert [one["rounds"] for one in found["summary"]] == [[50.0, 50.0]] * 2
    assert {"command", "commit", "hardware", "versions"} <= {*found}
