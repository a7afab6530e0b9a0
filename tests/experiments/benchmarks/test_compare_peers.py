import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from experiments.benchmarks import compare_peers
from experiments.benchmarks.compare_peers import commands, measure, summarise
from experiments.benchmarks.peers.set_up import environment_python
from seq2seq_memattn.commands.shared import cli

PEERS = "experiments.benchmarks.peers"
ROW = "{'kind': 'decode', 'lengths': '5', 'batch': 3, 'clean': True, 'tokens_per_s': 50.0}"


def stand_in(environments: Path, name: str, script: str = "") -> Path:
    """The Python of an environment, which prints a row with its arguments, or runs a script."""
    python = environment_python(environments, name)
    python.parent.mkdir(parents=True)
    script = script or f"print('note'); print(json.dumps({{**{ROW}, 'words': sys.argv[1:]}}))"
    python.write_text(f"#!{sys.executable}\nimport json, os, sys, time\n{script}\n")
    python.chmod(0o755)
    return python


def compare(environments: Path, output: Path, systems: str, *words: str) -> dict[str, Any]:
    """Runs the command with stand-ins; returns the content of its output."""
    flags = cli.Flags()
    compare_peers.define(flags)
    arguments = [f"--systems={systems}", f"--environments={environments}", f"--output={output}"]
    compare_peers.main(flags.parse([*arguments, *words]))
    return json.loads(output.read_text())


def row(system: str, speed: float, clean: bool = True, lengths: str = "50") -> dict[str, Any]:
    made = {"kind": "decode", "lengths": lengths, "batch": 128, "clean": clean}
    return {"system": system, "tokens_per_s": speed, **made}


def test_each_system_has_its_command(tmp_path: Path) -> None:
    python = stand_in(tmp_path, "opennmt_py")
    found = commands(["opennmt_py:luong+full_units", "ours:k_memory:64+int8+plain"], tmp_path)
    luong = ["--attention", "luong", "--option", "full_units"]
    ours = ["--attention", "k_memory:64", "--option", "int8", "--option", "plain"]
    assert found == {
        "opennmt-py luong+full_units": [str(python), "-m", f"{PEERS}.opennmt_py", *luong],
        "ours k_memory:64+int8+plain": [sys.executable, "-m", f"{PEERS}.ours", *ours],
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
    assert [*measure([str(stand_in(tmp_path, "pytorch", script))])] == [{"gpu": "-1"}]


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("sys.stderr.write('note\\n' * 50_000); sys.exit('no memory')", "exit status 1: no memory"),
        (
            "sys.exit('torch.exc.SomeError: no compiler\\n\\nSome advice')",
            "exit status 1: torch.exc.SomeError: no compiler",
        ),
        ("sys.exit(3)", "exit status 3"),
        ("os.kill(os.getpid(), 9)", "SIGKILL"),
    ],
)
def test_a_failure_is_described_by_its_kind_and_last_words(
    script: str, reason: str, tmp_path: Path
) -> None:
    with pytest.raises(RuntimeError, match=f"^{reason}$"):
        [*measure([str(stand_in(tmp_path, "pytorch", script))])]


def test_a_system_ends_with_the_comparison(tmp_path: Path) -> None:
    script = "print(json.dumps({'process': os.getpid()}), flush=True); time.sleep(60)"
    rows = measure([str(stand_in(tmp_path, "pytorch", script))])
    process = next(rows)["process"]
    rows.close()
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


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
    systems = "pytorch:bahdanau,opennmt_py:luong"
    found = compare(tmp_path, tmp_path / "found.json", systems, "--", "--lengths", "5")
    assert [(one["system"], one["round"]) for one in found["rows"]] == [
        (system, turn) for turn in (0, 1) for system in ("pytorch bahdanau", "opennmt-py luong")
    ]
    for one in found["rows"]:
        assert one["words"][:2] == ["-m", f"{PEERS}.{one['system'].split()[0].replace('-', '_')}"]
        assert one["words"][-2:] == ["--lengths", "5"]
    assert [one["rounds"] for one in found["summary"]] == [[50.0, 50.0]] * 2
    assert {"command", "commit", "hardware", "versions"} <= {*found}


def test_a_row_is_written_before_the_system_ends(tmp_path: Path) -> None:
    output = tmp_path / "found.json"
    script = (
        f"print(json.dumps({ROW}), flush=True)\n"
        "give_up = time.monotonic() + 30\n"
        f"while not os.path.exists({str(output)!r}):\n"
        "    time.monotonic() < give_up or sys.exit('not written')\n"
        "    time.sleep(0.01)"
    )
    stand_in(tmp_path, "pytorch", script)
    assert len(compare(tmp_path, output, "pytorch:bahdanau", "--rounds=1")["rows"]) == 1


def test_a_failure_leaves_all_rows_and_the_other_systems(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "found.json"
    stand_in(tmp_path, "pytorch", f"print(json.dumps({ROW})); sys.exit('out of memory')")
    stand_in(tmp_path, "opennmt_py")
    stand_in(tmp_path, "tensorflow_addons", "os.abort()")
    systems = "pytorch:bahdanau,opennmt_py:luong,tensorflow_addons:luong"
    with pytest.raises(SystemExit, match="^1$"):
        compare(tmp_path, output, systems)
    found = json.loads(output.read_text())
    rounds = [(one["system"], one["round"]) for one in found["rows"]]
    assert rounds == [("pytorch bahdanau", 0), ("opennmt-py luong", 0), ("opennmt-py luong", 1)]
    captured = capsys.readouterr()
    assert json.loads(captured.out.splitlines()[-1]) == {"summary": found["summary"]}
    assert captured.err.splitlines()[-2:] == [
        "error: pytorch bahdanau: exit status 1: out of memory",
        "error: tensorflow-addons luong: SIGABRT",
    ]
