"""A user's program: a functional Keras model from `fit` to search. TensorFlow is not needed."""

from pathlib import Path
from typing import Any

import keras
import numpy as np
from keras import ops

from seq2seq_memattn.attention.k_memory import KMemoryAttention
from seq2seq_memattn.layers.attention_decoder import AttentionDecoder
from seq2seq_memattn.losses import TokenAccuracy, TokenCrossEntropy
from seq2seq_memattn.search.beam import beam_search
from seq2seq_memattn.search.greedy import greedy_search
from seq2seq_memattn.search.searchable import Searchable
from seq2seq_memattn.vocabulary import END_ID, PAD_ID, START_ID

VOCABULARY, LONGEST, BEAM = 9, 5, 4


def examples(size: int) -> tuple[Any, Any, Any]:
    """Sources, target inputs and target outputs; each target is its source."""
    generator = np.random.default_rng(3)
    source, target_inputs, target = (np.zeros([size, LONGEST + 1], np.int32) for _ in range(3))
    for row in range(size):
        symbols = generator.integers(3, VOCABULARY, size=generator.integers(2, LONGEST + 1))
        source[row, : len(symbols) + 1] = target[row, : len(symbols) + 1] = [*symbols, END_ID]
        target_inputs[row, : len(symbols) + 1] = [START_ID, *symbols]
    return source, target_inputs, target


def build() -> tuple[keras.Model, Searchable]:
    source = keras.Input((None,), dtype="int32")
    target = keras.Input((None,), dtype="int32")
    embed = keras.layers.Embedding(VOCABULARY, 12, mask_zero=True)
    encoder = keras.layers.Bidirectional(keras.layers.GRU(10, return_sequences=True))
    decoder = AttentionDecoder(
        keras.layers.GRUCell(16), KMemoryAttention(num_slots=6), mixing_units=14
    )
    to_logits = keras.layers.Dense(VOCABULARY)
    model = keras.Model([source, target], to_logits(decoder(embed(target), encoder(embed(source)))))
    encode = keras.Model(source, encoder(embed(source)))
    return model, Searchable(encode, embed, decoder, to_logits)


def rescored(model: keras.Model, source: Any, tokens: Any) -> Any:
    """Log-probabilities of hypotheses under teacher forcing: float [batch, n_best]."""
    batch, n_best, length = tokens.shape
    flat = np.reshape(tokens, (batch * n_best, length))
    inputs = np.concatenate([np.full_like(flat[:, :1], START_ID), flat[:, :-1]], axis=1)
    logits = model.predict([np.repeat(source, n_best, axis=0), inputs], verbose=0)
    log_probs = np.array(ops.log_softmax(logits, axis=-1))
    chosen = np.take_along_axis(log_probs, flat[:, :, None], axis=2)[:, :, 0]
    return np.sum(chosen * (flat != PAD_ID), axis=1).reshape(batch, n_best)


def run_program(folder: Path, jit_compile: Any = "auto") -> dict[str, Any]:
    """Trains, saves, loads and searches.

    Returns:
        losses, accuracies: the loss and the accuracy of each epoch.
        loaded: the largest change of a logit by saving and loading.
        found: results of beam and greedy search, for the model and for the loaded model.
        rescored: the largest difference between log-probabilities of search and teacher forcing.
    """
    keras.utils.set_random_seed(5)
    source, target_inputs, target = examples(320)
    model, searchable = build()
    metrics = [TokenAccuracy()]
    model.compile(
        keras.optimizers.Adam(0.02), TokenCrossEntropy(), metrics=metrics, jit_compile=jit_compile
    )
    history = model.fit([source, target_inputs], target, batch_size=64, epochs=8, verbose=0)

    model.save(folder / "model.keras")
    loaded = keras.saving.load_model(folder / "model.keras")
    few, few_inputs = source[:8], target_inputs[:8]
    logits = [each.predict([few, few_inputs], verbose=0) for each in (model, loaded)]

    found = []
    for each in (searchable, Searchable.from_model(loaded)):
        beams = beam_search(each, few, beam_size=BEAM, n_best=3)
        greedy = greedy_search(each, few)
        results = (beams.tokens, beams.log_probs, greedy.tokens, greedy.log_probs)
        found.append([np.array(result) for result in results])
    tokens, log_probs, greedy_tokens, greedy_log_probs = found[0]
    tokens = np.concatenate([tokens, greedy_tokens[:, None]], axis=1)
    log_probs = np.concatenate([log_probs, greedy_log_probs[:, None]], axis=1)
    return {
        "losses": history.history["loss"],
        "accuracies": history.history["token_accuracy"],
        "loaded": float(np.abs(logits[0] - logits[1]).max()),
        "found": [[array.tolist() for array in arrays] for arrays in found],
        "rescored": float(np.abs(rescored(model, few, tokens) - log_probs).max()),
    }
