"""The progress of a run: everything in a checkpoint except the variables."""

import math
from typing import Any

from seq2seq_memattn.data.batching import FIRST_BATCH, Position
from seq2seq_memattn.training.measurements import Sums, Window
from seq2seq_memattn.training.updates.loss_scale import LossScale
from seq2seq_memattn.training.updates.schedule import Plateau


class Progress:
    """The counts and figures from which a run resumes.

    Attributes:
        update: int. Updates done, including skipped ones.
        position: `Position` of the next batch.
        best_bleu: float. Best validation BLEU, 0 to 100; -1 before the first validation.
        best_loss: float. The loss of the best validation; of two validations with equal BLEU, the
            one with the lower loss is better.
        best_update: int. The update of the best validation.
        stale: int. Number of regular validations since the best one.
        validated: int. The last update that was validated.
        plateau: `Plateau`.
        loss_scale: `LossScale`.
        skipped: int. Updates skipped because of NaN or infinity.
        seconds: float. Seconds of training over all starts of the run.
        window: `Window` of the updates since the last line of the log.
        teacher: `Teacher.identity` of the run's teacher; None if it has no teacher.
    """

    def __init__(self) -> None:
        self.update = 0
        self.position: Position = FIRST_BATCH
        self.best_bleu = -1.0
        self.best_loss = math.inf
        self.best_update = 0
        self.stale = 0
        self.validated = 0
        self.plateau = Plateau()
        self.loss_scale = LossScale()
        self.skipped = 0
        self.seconds = 0.0
        self.window = Window()
        self.teacher: dict[str, Any] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Returns the progress as JSON values."""
        return {
            **vars(self),
            "position": list(self.position),
            "plateau": self.plateau._asdict(),
            "loss_scale": self.loss_scale._asdict(),
            "window": self.window.sums._asdict(),
        }

    def load(self, record: dict[str, Any]) -> None:
        """Loads a record of `to_dict`; fields that an older record lacks keep their values."""
        loss_scale = self.loss_scale
        vars(self).update({name: record[name] for name in vars(self) if name in record})
        self.position = Position(*record["position"])
        self.plateau = Plateau(**record.get("plateau", {}))
        self.loss_scale = LossScale(**record.get("loss_scale", loss_scale._asdict()))
        self.window = Window(Sums(**record.get("window", {})))
