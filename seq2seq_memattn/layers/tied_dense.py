"""The output layer whose weights are the target embeddings."""

from typing import Any

import keras
from keras import ops

from seq2seq_memattn.compute.rows import on_rows


@keras.saving.register_keras_serializable(package="seq2seq_memattn")
class TiedDense(keras.layers.Layer):
    """Output layer with its own bias and the rows of an embedding as its weights.

    The embedding is an argument of each call, so its weights are trained, saved and counted only in
    the layer that owns them.

    Source: Press and Wolf (2017), with the bias of google/seq2seq's output layer.

    Args:
        units: int > 0. Rows of the embedding: the size of the vocabulary.

    Call arguments:
        inputs: float [..., embedding_dim].
        embeddings: float [units, embedding_dim], a tensor.

    Returns:
        float [..., units].

    Raises:
        ValueError: if `units` is not positive.

    Example:
    >>> layer = TiedDense(7)
    >>> tuple(layer(ops.ones([2, 3, 5]), ops.ones([7, 5])).shape)
    (2, 3, 7)
    """

    def __init__(self, units: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if units < 1:
            raise ValueError(f"`units` must be positive; got {units}.")
        self.units = units

    def build(self, inputs_shape: Any, embeddings_shape: Any = None) -> None:
        del inputs_shape, embeddings_shape
        self.bias = self.add_weight((self.units,), initializer="zeros", name="bias")

    def call(self, inputs: Any, embeddings: Any) -> Any:
        # einsum transposes the embeddings inside the product; `ops.transpose` would copy them at
        # each step of a search. The product runs on flattened rows, because TensorFlow broadcasts
        # half-precision matrices wrongly on CPUs with AMX.
        return on_rows(lambda rows: ops.einsum("nd,vd->nv", rows, embeddings) + self.bias, inputs)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "units": self.units}
