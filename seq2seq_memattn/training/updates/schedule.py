"""Learning-rate schedules; they depend only on the update and on state in the checkpoint."""

import math
from typing import NamedTuple

from seq2seq_memattn.config import TrainingConfig


class Plateau(NamedTuple):
    """The state of the plateau schedule; part of a checkpoint.

    Fields:
        best_bleu: float. Best BLEU of a regular validation, 0 to 100. Regular validations are those
            every `validate_every` updates.
        stale: int. Number of regular validations since the best one or, if later, since the last
            decay.
        decays: int. Number of times that the learning rate was multiplied by the decay rate.
    """

    best_bleu: float = -1.0
    stale: int = 0
    decays: int = 0

    def after(self, bleu: float, patience: int) -> "Plateau":
        """The state after a validation.

        The learning rate decays after `patience` validations in a row without a better BLEU.
        """
        if bleu > self.best_bleu:
            return Plateau(bleu, 0, self.decays)
        stale = self.stale + 1
        if stale < patience:
            return self._replace(stale=stale)
        return self._replace(stale=0, decays=self.decays + 1)


def learning_rate(config: TrainingConfig, updates: int, decays: int = 0) -> float:
    """The learning rate of an update.

    Sources: inverse_sqrt: Vaswani et al. (2017), equation 3, here scaled so that its peak is
    `config.learning_rate`. exponential: google/seq2seq, `training/utils.py`; decay starts after
    `decay_start` updates.

    Args:
        config: `TrainingConfig`.
        updates: int >= 0. Updates done before this one.
        decays: int >= 0. Decays of the plateau schedule, see `Plateau`.

    Returns:
        float > 0.
    """
    rate, warmup = config.learning_rate, config.warmup_updates
    if updates < warmup:
        rate *= (updates + 1) / warmup
    elif config.schedule == "inverse_sqrt":
        rate *= math.sqrt(warmup / (updates + 1))
    if config.schedule == "exponential":
        periods = max(0, updates - config.decay_start) / config.decay_every
        rate *= config.decay_rate ** (math.floor(periods) if config.decay_staircase else periods)
    elif config.schedule == "plateau":
        rate *= config.decay_rate**decays
    return rate
