"""One update by `fit` with weights of sentences, tokens and classes, on Keras's backend."""

import json
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from seq2seq_memattn.losses import TokenCrossEntropy
from seq2seq_memattn.vocabulary import END_ID, PAD_ID
from tests.inputs import normal

VOCAB = 7
TARGETS = np.array(
    [[3, 5, END_ID, PAD_ID], [END_ID, PAD_ID, PAD_ID, PAD_ID], [4, 4, 6, END_ID]], np.int32
)
LOGITS = normal(3, 4, VOCAB, scale=3.0)
SENTENCES = np.array([0.5, 4.0, 2.0])
CLASSES = {END_ID: 0.25, 4: 3.0, 6: 0.0}
TOKENS = np.vectorize(lambda token: CLASSES.get(token, 1.0))(TARGETS)

Fitted = tuple[float, list[list[float]]]


def fitted(**options: Any) -> Fitted:
    """The loss of the first update, and the kernel after it, which starts as the identity."""
    identity = keras.layers.Dense(VOCAB, use_bias=False, kernel_initializer="identity")
    model = keras.Sequential([keras.Input([4, VOCAB]), identity])
    model.compile(keras.optimizers.SGD(1.0), TokenCrossEntropy())
    history = model.fit(**options, epochs=1, verbose=0)
    return history.history["loss"][0], np.asarray(identity.kernel).tolist()


def all_fitted() -> dict[str, Fitted]:
    """The first update for each kind of weights."""
    arrays: dict[str, Any] = {"x": LOGITS, "y": TARGETS, "batch_size": 3, "shuffle": False}
    dataset = tf.data.Dataset.from_tensors((LOGITS, TARGETS[:, :, None]))
    return {
        "sentences": fitted(**arrays, sample_weight=SENTENCES),
        "tokens": fitted(**arrays, sample_weight=TOKENS),
        "classes": fitted(x=dataset, class_weight=CLASSES, shuffle=False),
    }


def main() -> None:
    """Prints all results as one line of JSON."""
    print(json.dumps(all_fitted()))
