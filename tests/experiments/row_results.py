"""Made-up results of the rows of a study."""

from typing import Any

from experiments.reproduction.results import write_json
from experiments.reproduction.rows import Row, identity
from experiments.reproduction.study import Study
from seq2seq_memattn.runs.checkpoints import write_arrays
from seq2seq_memattn.runs.directory import BEST_NAME


def result_of(row: Row, bleu: float) -> dict[str, Any]:
    """A result with two validations; `bleu` is the score of the second."""
    return {
        **identity(row),
        "label": row.label,
        "curve_name": row.curve,
        "paper": dict(row.paper),
        "bleu": bleu,
        "training": {"best_update": 4000, "best_bleu": bleu, "seconds": 60.0},
        "curve": [
            {"kind": "valid", "update": update, "seconds": update / 100, "bleu": score}
            for update, score in ((2000, bleu / 2), (4000, bleu))
        ],
        "command": f"python -m experiments.train --config={row.config}",
        "commit": "0123456789",
        "backend": "jax",
        "hardware": "some GPU",
    }


def write_results_of(study: Study) -> list[dict[str, Any]]:
    """Writes and returns results of all rows of a study."""
    results = [result_of(row, 50.0 + i) for i, row in enumerate(study.rows)]
    for row, result in zip(study.rows, results, strict=True):
        write_json(study.result_path(row), result)
    return results


def write_run_of(study: Study, result: dict[str, Any], **more: Any) -> None:
    """Writes a run with the best weights of a result; `more` changes their record."""
    run_dir, training = study.runs_dir / result["name"], result["training"]
    run_dir.mkdir(parents=True, exist_ok=True)
    record = {"update": training["best_update"], "bleu": training["best_bleu"]}
    write_arrays(run_dir / BEST_NAME, [], {**record, **more})
