"""The times that this repository has: they are not measured again."""

from pathlib import Path

import pytest

from experiments.reproduction import timings
from experiments.reproduction.jobs import Commands
from experiments.reproduction.study import make_study
from experiments.studies import flexible_table3, table1, table3
from seq2seq_memattn.presets.copy_task import ATTENTIONS

RESULTS = Path(__file__).parents[3] / "results"


@pytest.fixture(autouse=True)
def nothing_is_run(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (timings, table3, flexible_table3):
        monkeypatch.setattr(module, "run_command", pytest.fail)
    monkeypatch.setattr(Commands, "run", pytest.fail)


@pytest.mark.parametrize("work", ["runs", "/elsewhere/runs"])
def test_recorded_times_count_wherever_the_runs_and_results_are(work: str) -> None:
    studies = {
        name: make_study(name, "small", ["all"], Path(work), RESULTS)
        for name in ("table1", "table3", "flexible_table3")
    }
    found = studies["table1"].finished()
    table1.time_decoding(found, studies["table1"].results_dir, tuple(ATTENTIONS.values()))
    assert [row["name"] for row in table3.run(studies["table3"])]
    assert flexible_table3.run(studies["flexible_table3"])
