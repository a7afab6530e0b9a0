import dataclasses
from types import SimpleNamespace
from typing import Any

import pytest

from seq2seq_memattn.config import TrainingConfig
from seq2seq_memattn.training.updates.parameter_server import AsynchronousUpdater
from tests.errors import refused


@pytest.mark.parametrize(
    ("options", "flag"),
    [
        ({"accumulate": 2}, "accumulate"),
        ({"jit_compile": True}, "jit_compile"),
        ({"precision": "mixed_float16"}, "precision=mixed_float16"),
    ],
)
def test_what_parameter_servers_cannot_do_is_refused(options: dict[str, Any], flag: str) -> None:
    config = dataclasses.replace(TrainingConfig(), **options)
    message = refused(AsynchronousUpdater, None, None, None, config)
    assert message == f"--{flag}: not with --strategy=parameter_server"


def test_workers_with_several_gpus_are_refused() -> None:
    strategy = SimpleNamespace(num_replicas_in_sync=2)
    message = refused(AsynchronousUpdater, strategy, None, None, TrainingConfig())
    assert "expected at most one GPU for each worker" in message and message.endswith("got 2")
