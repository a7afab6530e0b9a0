import json
from pathlib import Path

import pytest

from experiments.benchmarks import compare_checkouts
from experiments.benchmarks.compare_checkouts import Round, measure, summarise
from seq2seq_memattn.commands.shared import cli


def checkout(folder: Path, script: str) -> Path:
    (folder / "experiments").mkdir(parents=True)
    (folder / "experiments" / "speed.py").write_text(script)
    return folder


def test_a_summary_has_the_median_ratio_and_that_of_equal_code() -> None:
    rounds = [Round({"batches": base}, {"batches": 2.0}, 0.0) for base in (2.0, 8.0, 4.0)]
    (row,) = summarise(Round({"batches": 3.0}, {"batches": 4.0}, 0.0), rounds)
    assert row == {
        "measured": "batches",
        "ratio": 2.0,
        "ratios": [1.0, 4.0, 2.0],
        "ratio_of_equal_code": 0.75,
    }


def test_each_checkout_runs_its_own_command(tmp_path: Path) -> None:
    for name, seconds in (("first", 1.5), ("second", 2.5)):
        rows = json.dumps({"rows": [{"attention": "bahdanau", "seconds": seconds}]})
        folder = checkout(tmp_path / name, f"print('{rows}')")
        assert measure(folder, ["training"], 1) == {"training, bahdanau": seconds}


def test_a_command_that_fails_is_named_with_its_last_words(tmp_path: Path) -> None:
    folder = checkout(tmp_path, "raise SystemExit('no such attention')")
    with pytest.raises(ValueError, match="exit status 1: no such attention"):
        measure(folder, ["training"], 1)


def test_a_round_says_what_other_programs_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Watch(compare_checkouts.Stopwatch):
        def __exit__(self, *error: object) -> None:
            self.elsewhere = 0.3

    monkeypatch.setattr(compare_checkouts, "Stopwatch", Watch)
    monkeypatch.setattr(compare_checkouts, "measure", lambda *_: {"training": 1.0})
    found = compare_checkouts.measure_round(tmp_path, tmp_path, ["training"], 1)
    assert found == Round({"training": 1.0}, {"training": 1.0}, 0.3)


def test_two_checkouts_are_compared_in_turns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, seconds in (("base", 3.0), ("ours", 1.5)):
        rows = json.dumps({"rows": [{"attention": "none", "seconds": seconds}]})
        checkout(tmp_path / name, f"print('{rows}')")
    monkeypatch.setattr(compare_checkouts, "ROOT", tmp_path / "ours")
    words = [f"--base={tmp_path / 'base'}", "--kinds=training", "--rounds=2", "--max_elsewhere=99"]
    flags = cli.Flags()
    compare_checkouts.define(flags)
    compare_checkouts.main(flags.parse([*words, f"--output={tmp_path / 'found.json'}"]))
    found = json.loads((tmp_path / "found.json").read_text())
    (row,) = found["summary"]
    assert row["measured"] == "training, none"
    assert (row["ratios"], row["ratio_of_equal_code"]) == ([2.0, 2.0], 1.0)
    assert [each["ours"] for each in found["rounds"]] == [{"training, none": 1.5}] * 2


def test_a_busy_round_leaves_the_finished_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkout(tmp_path, "")
    quiet = Round({"training": 3.0}, {"training": 1.5}, 0.0)
    rounds = [quiet, quiet, *[quiet._replace(elsewhere=0.5)] * 3]
    monkeypatch.setattr(compare_checkouts, "measure_round", lambda *_: rounds.pop(0))
    flags = cli.Flags()
    compare_checkouts.define(flags)
    output = tmp_path / "found.json"
    with pytest.raises(ValueError, match="other programs used"):
        compare_checkouts.main(flags.parse([f"--base={tmp_path}", f"--output={output}"]))
    assert json.loads(output.read_text())["summary"][0]["ratios"] == [2.0]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "--base: expected a checkout"),
        (["--kinds=speed"], "--kinds: expected some of batches"),
        (["--max_elsewhere=0"], "other programs used more than 0.0 cores in 3 rounds"),
    ],
)
def test_what_cannot_be_compared_is_refused(
    words: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if words:
        checkout(tmp_path, "")
    busy = Round({"training": 1.0}, {"training": 1.0}, 0.5)
    monkeypatch.setattr(compare_checkouts, "measure_round", lambda *_: busy)
    flags = cli.Flags()
    compare_checkouts.define(flags)
    with pytest.raises(ValueError, match=message):
        compare_checkouts.main(flags.parse([f"--base={tmp_path}", *words]))
