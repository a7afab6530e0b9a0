"""The training loss (cross entropy per target token) and the accuracy metric."""

from typing import Any

import keras
import numpy as np
from keras import ops

from seq2seq_memattn.checks import check_share, check_size
from seq2seq_memattn.compute.ids import ids_below, to_int32
from seq2seq_memattn.compute.precision import NARROW
from seq2seq_memattn.compute.private import prefer_high
from seq2seq_memattn.vocabulary import PAD_ID


def token_cross_entropy(
    targets: Any, logits: Any, label_smoothing: float = 0.0, pad_id: int = PAD_ID
) -> tuple[Any, Any]:
    """Cross entropy of each token.

    Source of label smoothing: Szegedy et al. (2016), section 7. Cross entropy against a
    distribution with 1 - label_smoothing at the target and label_smoothing spread evenly over the
    vocabulary.

    Args:
        targets: int32 [batch, target_length].
        logits: float [batch, target_length, vocab].
        label_smoothing: float in [0, 1).
        pad_id: int. The id of padding.

    Returns:
        losses: float [batch, target_length], in nats; 0 on padding.
        real: the same dtype and shape; 1 on real tokens, end tokens included, and 0 on padding.
    """
    losses = keras.losses.sparse_categorical_crossentropy(targets, logits, from_logits=True)
    if label_smoothing:
        # -(1 - s) log p_target - s mean(log p) = -log p_target + s (logit_target - mean(logits))
        chosen = ops.take_along_axis(logits, targets[:, :, None], axis=-1)[:, :, 0]
        losses += label_smoothing * (chosen - ops.mean(logits, axis=-1))
    real = ops.cast(ops.not_equal(targets, pad_id), losses.dtype)
    return losses * real, real


def summed_cross_entropy(
    targets: Any, logits: Any, label_smoothing: float = 0.0
) -> tuple[Any, Any]:
    """Cross entropy summed over real tokens, and their number.

    Args:
        targets, logits, label_smoothing: see `token_cross_entropy`.

    Returns:
        loss: float scalar, in nats.
        num_tokens: scalar of the same dtype.
    """
    losses, real = token_cross_entropy(targets, logits, label_smoothing)
    return ops.sum(losses), ops.sum(real)


@keras.saving.register_keras_serializable(package="seq2seq_memattn")
class TokenCrossEntropy(keras.losses.Loss):
    """Mean cross entropy in nats per target token of the batch, for `model.compile`.

    Source: google/seq2seq, `losses.py` and `models/seq2seq_model.py`: the sum over real tokens,
    end tokens included, divided by their number.

    With weights, the loss is the weighted sum of the tokens' losses, still divided by the number of
    real tokens and not by the sum of the weights. `fit` takes `sample_weight` for sentences,
    [batch], or for tokens, [batch, target_length]. `class_weight`, one weight per target id, works
    only with a `tf.data.Dataset` whose targets are [batch, target_length, 1]. With targets of
    another shape, Keras expects one class per sentence.

    Under a `tf.distribute` strategy, each replica divides by the number of its own tokens, and
    Keras averages the replicas, as it does for its own masked losses.

    Args:
        label_smoothing: float in [0, 1). The target distribution has 1 - label_smoothing at the
            target, and label_smoothing spread evenly over the vocabulary (Szegedy et al., 2016,
            section 7).
        pad_id: int. The id of padding, which does not count towards the loss. It may be outside the
            vocabulary, such as -100.
        name, **kwargs: `name`, `reduction` and `dtype`, as for every Keras loss. The loss is
            computed in float32 at least, because Keras casts the ids to its dtype: float16 would
            round ids above 2,048, and bfloat16 ids above 256.

    Call arguments:
        y_true: int [batch, target_length] or [batch, target_length, 1].
        y_pred: float [batch, target_length, vocab]. Logits; a mask that they carry is ignored.
        sample_weight: float [batch], [batch, target_length] or [batch, target_length, 1], or None.

    Raises:
        ValueError: if `label_smoothing` is out of range, or `sample_weight` has another shape; in
            eager mode, if an id other than `pad_id` is outside the vocabulary. A plain TensorFlow
            graph raises `InvalidArgumentError` for such an id when the graph runs. Compiled code
            (XLA, JAX) does not check ids: with such an id, the loss is meaningless.

    Example:
    >>> import numpy as np
    >>> from seq2seq_memattn import TokenCrossEntropy
    >>> targets = np.array([[5, 2, 0, 0]])  # a symbol, the end token, padding
    >>> logits = np.zeros([1, 4, 8], "float32")  # all 8 ids are equally probable
    >>> round(float(TokenCrossEntropy()(targets, logits)), 3)  # log 8
    2.079
    """

    def __init__(
        self,
        label_smoothing: float = 0.0,
        pad_id: int = PAD_ID,
        name: str = "token_cross_entropy",
        **kwargs: Any,
    ) -> None:
        policy = keras.dtype_policies.get(kwargs.pop("dtype", None) or keras.config.floatx())
        is_narrow = policy.compute_dtype in NARROW
        super().__init__(name=name, dtype="float32" if is_narrow else policy, **kwargs)
        check_share("label_smoothing", label_smoothing)
        self.label_smoothing = label_smoothing
        self.pad_id = pad_id

    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        ids = _ids(y_true)
        is_real = ops.not_equal(ids, self.pad_id)
        if not 0 <= self.pad_id < y_pred.shape[-1]:
            ids = ops.where(is_real, ids, 0)  # padding, whose weight is 0
        ids = ids_below("y_true", ids, y_pred.shape[-1])
        weights = ops.cast(is_real, self.dtype)
        # [batch, target_length]
        if self.reduction in ("sum_over_batch_size", "mean"):  # Keras's mean counts padding
            weights *= ops.divide(ops.size(weights), ops.maximum(ops.sum(weights), 1.0))
        if sample_weight is not None:
            weights *= _token_weights(ops.convert_to_tensor(sample_weight, self.dtype), ids)
        # The copy of `y_pred` has no mask. With one, Keras would correct the mean a second time.
        return super().__call__(ids, ops.copy(y_pred), weights)

    def call(self, y_true: Any, y_pred: Any) -> Any:
        losses, _ = token_cross_entropy(_ids(y_true), y_pred, self.label_smoothing, self.pad_id)
        return losses

    def get_config(self) -> dict[str, Any]:
        own = {"label_smoothing": self.label_smoothing, "pad_id": self.pad_id}
        return {**super().get_config(), **own, "dtype": self.dtype}


@keras.saving.register_keras_serializable(package="seq2seq_memattn")
class TokenAccuracy(keras.metrics.MeanMetricWrapper):
    """Share of the target tokens, end tokens included, that have the highest logit.

    For `model.compile(..., metrics=[TokenAccuracy()])`. Padding does not count. Keras's own
    "accuracy" uses the mask of the decoder's inputs. With targets `ids[:, 1:]` and inputs
    `ids[:, :-1]`, that mask is one token too long for every target that ends with padding, so one
    position of padding counts.

    Args:
        pad_id: int. The id of padding.
        name, dtype: as for every Keras metric.

    Example:
    >>> import numpy as np
    >>> from seq2seq_memattn import TokenAccuracy
    >>> targets = np.array([[5, 2, 0, 0]])  # a symbol, the end token, padding
    >>> logits = np.eye(8, dtype="float32")[[[5, 3, 0, 0]]]  # the first of two is right
    >>> float(TokenAccuracy()(targets, logits))
    0.5
    """

    def __init__(
        self, pad_id: int = PAD_ID, name: str = "token_accuracy", dtype: Any = None
    ) -> None:
        super().__init__(_are_right, name, dtype)
        self.pad_id = pad_id
        prefer_high(self)

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        ids = _ids(y_true)
        weights = ops.cast(ops.not_equal(ids, self.pad_id), "float32")
        if sample_weight is not None:
            weights *= _token_weights(ops.convert_to_tensor(sample_weight, "float32"), ids)
        # As one row of tokens: Keras would take the mean over each sentence, padding included,
        # and would weight the tokens a second time by a mask of `y_pred`.
        tokens = ops.reshape(ids, (-1,)), ops.reshape(y_pred, (-1, y_pred.shape[-1]))
        super().update_state(*tokens, ops.reshape(weights, (-1,)))

    def get_config(self) -> dict[str, Any]:
        return {"name": self.name, "dtype": self.dtype, "pad_id": self.pad_id}


def _are_right(y_true: Any, y_pred: Any) -> Any:
    return ops.cast(ops.equal(y_true, ops.argmax(y_pred, axis=-1)), "float32")


def _token_weights(weights: Any, ids: Any) -> Any:
    """Weights of sentences or of tokens as [batch, 1] or [batch, target_length], like `ids`."""
    rank = len(weights.shape)
    if rank == 3 and weights.shape[-1] in (1, None):
        weights = ops.squeeze(weights, axis=-1)
    elif rank not in (1, 2):
        raise ValueError(
            "`sample_weight`: expected a weight for each sentence or for each token; got shape "
            f"{tuple(weights.shape)}."
        )
    for axis, size, expected in zip(("batch", "length"), weights.shape, ids.shape, strict=False):
        check_size("sample_weight", axis, size, expected)
    return ops.expand_dims(weights, axis=1) if rank == 1 else weights


def _ids(y_true: Any) -> Any:
    """Targets as int32 [batch, target_length]."""
    ids = to_int32(y_true if hasattr(y_true, "dtype") else np.asarray(y_true))
    if len(ids.shape) != 3:
        return ids
    if ids.shape[-1] not in (1, None):
        raise ValueError(
            f"`y_true`: expected one id for each token; got {ids.shape[-1]} numbers, such as a "
            "one-hot vector."
        )
    return ops.squeeze(ids, axis=-1)
