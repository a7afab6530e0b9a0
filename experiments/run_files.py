"""What commands read of a run: its log, and its last checkpoint."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from seq2seq_memattn.runs.checkpoints import CheckpointFolder
from seq2seq_memattn.runs.directory import CHECKPOINTS_NAME

METRICS = "metrics.jsonl"


def read_curve(run_dir: Path) -> list[dict[str, Any]]:
    """Loss and validation BLEU of a run: the lines of its log."""
    lines = (run_dir / METRICS).read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def last_checkpoint(run_dir: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Arrays and record of a run's last checkpoint; nothing, and update 0, without one."""
    paths = CheckpointFolder(run_dir / CHECKPOINTS_NAME, sys.maxsize).paths()
    if not paths:
        return {}, {"update": 0}
    with np.load(paths[-1]) as archive:
        arrays = dict(archive)
    return arrays, json.loads(arrays.pop("record").tobytes())
