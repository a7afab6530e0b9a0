"""The steps of search along given targets."""

from typing import Any

import numpy as np
from keras import ops

from seq2seq_memattn.data.batching import Batch
from seq2seq_memattn.search.compiled import compiled
from seq2seq_memattn.search.follow import follow
from seq2seq_memattn.search.prepared import DecodingModel, folds_rows, make_weights
from seq2seq_memattn.vocabulary import PAD_ID


class ForcedDecoder:
    """Takes the steps of search along given targets.

    Args:
        model: `Seq2Seq`.
        jit_compile: bool. Whether XLA compiles the steps, anew for each shape.
    """

    def __init__(self, model: Any, jit_compile: bool) -> None:
        folded = folds_rows(model, 1, None)

        def log_probs(weights: Any, source: Any, inputs: Any, outputs: Any) -> Any:
            decoding = DecodingModel(model, folded, weights)
            memory, state = decoding.start(source, 1)

            def advance(step: Any, state: Any, total: Any) -> Any:
                logits, _, state = decoding.step(
                    ops.take(inputs, step, axis=1)[:, None], memory, state
                )
                now = ops.log_softmax(logits[:, 0])
                wanted = ops.take(outputs, step, axis=1)
                added = ops.take_along_axis(now, wanted[:, None], axis=1)[:, 0]
                total += ops.where(wanted == PAD_ID, ops.zeros_like(added), added)
                return step + 1, state, total

            start = ops.zeros((), "int32"), state, ops.zeros(ops.shape(source)[:1])
            steps = ops.shape(inputs)[1]
            return ops.while_loop(lambda step, *_: step < steps, advance, start)[2]

        def looked_at(weights: Any, source: Any, outputs: Any, lengths: Any) -> Any:
            decoding = DecodingModel(model, folded, weights)
            started = decoding.start(source, 1)
            return follow(decoding, *started, outputs[:, None], lengths[:, None])[2]

        self._weights = compiled(model, lambda: make_weights(model, folded))()
        self._log_probs = compiled(model, log_probs, jit_compile)
        self._looked_at = compiled(model, looked_at)

    def __call__(self, batch: Batch) -> Any:
        """Log-probabilities of a batch's targets, [batch]; takes as many steps as the longest."""
        ids = (batch[name] for name in ("source", "target_inputs", "target_outputs"))
        return np.asarray(self._log_probs(self._weights, *ids))

    def window(self, batch: Batch) -> Any:
        """Encoder states scored per step of each target, [batch]."""
        outputs = batch["target_outputs"]
        lengths = np.count_nonzero(outputs, axis=1).astype(np.int32)
        found = self._looked_at(self._weights, batch["source"], outputs, lengths)
        return np.asarray(found)[:, 0]
