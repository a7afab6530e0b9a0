"""The option records reject wrong values with errors that name the option and the value."""

import dataclasses
import json
import math
from typing import Any

import numpy as np
import pytest

from seq2seq_memattn.config import DevicesConfig, ModelConfig, TrainingConfig

RECORDS = (ModelConfig, TrainingConfig)


@pytest.mark.parametrize(
    ("record", "options", "message"),
    [
        (ModelConfig, {"decoder_layers": 0}, "`decoder_layers` must be positive; got 0"),
        (ModelConfig, {"mixing_units": -1}, "`mixing_units` must not be negative; got -1"),
        (ModelConfig, {"max_source_length": -5}, "`max_source_length` must not be negative"),
        (
            ModelConfig,
            {"attention": "bahdanau", "position_encoding": "masked"},
            "`position_encoding` masked is for k_memory; the attention is bahdanau",
        ),
        *(
            (
                ModelConfig,
                {"attention": "bahdanau", name: value},
                f"`{name}` {value} is for k_memory; the attention is bahdanau",
            )
            for name, value in (
                *(("slot_hidden", 8), ("slot_spread", 2.0), ("slot_dropout", 0.1)),
                ("attention_bias", True),
            )
        ),
        (
            ModelConfig,
            {"attention": "local_m", "local_sigma": 2.0},
            "`local_sigma` 2.0 is for local_p; the attention is local_m",
        ),
        (ModelConfig, {"threshold": 0.8}, "`threshold` 0.8 is for flexible; the attention is k_m"),
        *(
            (ModelConfig, {name: value, **bridge}, f"`{name}` {value} is for a dense bridge; got")
            for name, value, bridge in (
                ("bridge_activation", "tanh", {}),
                ("bridge_from", "top", {"bridge": "copy"}),
                ("bridge_outputs_only", True, {"bridge": "zero", "attention": "none"}),
            )
        ),
        (ModelConfig, {"flexible_sigma": 0.0}, "`flexible_sigma` must be positive; got 0.0"),
        *(
            (DevicesConfig, {name: 0.5}, f"`{name}` must be at least 1 second; got 0.5")
            for name in ("peer_timeout", "start_timeout")
        ),
        (ModelConfig, {"slot_hidden": -1}, "`slot_hidden` must not be negative; got -1"),
        (ModelConfig, {"slot_spread": -1.0}, "`slot_spread` must not be negative; got -1.0"),
        (ModelConfig, {"slot_dropout": 1.0}, r"`slot_dropout` must be in \[0, 1\); got 1.0"),
        (TrainingConfig, {"balance_weight": -0.1}, "`balance_weight` must not be negative"),
        (ModelConfig, {"encoder_projection_units": -1}, "`encoder_projection_units` must not be"),
        (ModelConfig, {"dropout": 1.0}, r"`dropout` must be in \[0, 1\); got 1.0"),
        (ModelConfig, {"encoder_cell": "rnn"}, "`encoder_cell` must be one of 'lstm', 'gru'"),
        (ModelConfig, {"seed": -1}, "`seed` must not be negative; got -1"),
        *(
            (record, {"seed": 2**31}, "`seed` must be at most 2147483647; got 2147483648")
            for record in RECORDS
        ),
        (TrainingConfig, {"batch_size": 0}, "`batch_size` must be positive; got 0"),
        (TrainingConfig, {"clip_norm": -1.0}, "`clip_norm` must not be negative; got -1.0"),
        (TrainingConfig, {"clip_norm": math.nan}, "`clip_norm` must be finite; got nan"),
        (TrainingConfig, {"clip_norm": math.inf}, "`clip_norm` must be finite; got inf"),
        (TrainingConfig, {"embedding_clip_norm": -0.1}, "`embedding_clip_norm` must not be"),
        (TrainingConfig, {"patience": -1}, "`patience` must not be negative; got -1"),
        (TrainingConfig, {"checkpoint_minutes": -1.0}, "`checkpoint_minutes` must not be negative"),
        (TrainingConfig, {"learning_rate": math.nan}, "`learning_rate` must be finite; got nan"),
        (TrainingConfig, {"learning_rate": 0.0}, "`learning_rate` must be positive; got 0.0"),
        (TrainingConfig, {"adam_epsilon": 0.0}, "`adam_epsilon` must be positive; got 0.0"),
        (TrainingConfig, {"stop_at_bleu": 0.0}, "`stop_at_bleu` must be positive; got 0.0"),
    ],
)
def test_what_makes_no_sense_is_refused(
    record: type, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        record(**options)


@pytest.mark.parametrize("record", RECORDS)
def test_a_record_is_the_same_after_its_dictionary(record: Any) -> None:
    changed = dataclasses.replace(record(), seed=7)
    assert record.from_dict(changed.to_dict()) == changed
    with pytest.raises(ValueError, match="Unknown option 'sede'"):
        record.from_dict({"sede": 7})


def test_numbers_of_numpy_are_stored_as_those_of_python() -> None:
    record = TrainingConfig(batch_size=np.int64(16), learning_rate=np.float32(0.5))
    assert json.loads(json.dumps(record.to_dict()))["batch_size"] == 16
    assert record == TrainingConfig(batch_size=16, learning_rate=0.5)
