"""Translates with K-memory attention: from two text files to a BLEU score.

Shows subwords (SentencePiece), batches of similar length (`tf.data`), a decoder that starts from
the encoder's last states, `fit` with validation, and beam search. Each step reads a memory of 32
vectors, however long the source is.

    python examples/translation.py --source=train.en --target=train.de

On the 29,000 English and German captions of Multi30k, this reached 27.2 BLEU after 8.9 minutes on
two cores of a Xeon with nothing else running.
"""

import argparse
import io
import random
import time
from pathlib import Path

import keras
import numpy as np
import sacrebleu
import sentencepiece
import tensorflow as tf

from seq2seq_memattn import (
    AttentionDecoder,
    KMemoryAttention,
    Searchable,
    TokenCrossEntropy,
    beam_search,
)

parser = argparse.ArgumentParser(description="Learns to translate.")
parser.add_argument("--source", type=Path, required=True, help="text, a sentence in each line")
parser.add_argument("--target", type=Path, required=True, help="its translation, line by line")
parser.add_argument("--held_out", type=int, default=1_000, help="validation pairs; as many to test")
parser.add_argument("--vocab_size", type=int, default=4_000, help="subwords of both languages")
parser.add_argument("--units", type=int, default=256)
parser.add_argument("--epochs", type=int, default=4)
options = parser.parse_args()
keras.utils.set_random_seed(0)
start = time.perf_counter()

# The data: one translation of each distinct source, so that no test source is in the training set.

texts = [file.read_text("utf-8") for file in (options.source, options.target)]
sides = [text.rstrip("\n").split("\n") for text in texts]
pairs = list(dict(zip(*sides, strict=True)).items())
random.shuffle(pairs)
size = options.held_out
valid_pairs, test_pairs, train_pairs = pairs[:size], pairs[size : 2 * size], pairs[2 * size :]

# One vocabulary of subwords for both languages.

trained = io.BytesIO()
sentencepiece.SentencePieceTrainer.train(
    sentence_iterator=(sentence for pair in train_pairs for sentence in pair),
    model_writer=trained,
    vocab_size=options.vocab_size,
    minloglevel=2,
    pad_id=0,
    bos_id=1,
    eos_id=2,
    unk_id=3,
)
subwords = sentencepiece.SentencePieceProcessor(model_proto=trained.getvalue())

# Batches of 64 sentences of similar length have little padding. The decoder's input begins with the
# start token and leaves out the end token; its output begins with the token after the start token.


def batches(pairs: list[tuple[str, str]]) -> tf.data.Dataset:
    """Batches ((source, target_inputs), target_outputs), each int32 [batch, length]."""
    sources, targets = map(list, zip(*sorted(pairs, key=lambda pair: len(pair[1])), strict=True))
    source = tf.ragged.constant(subwords.encode(sources, add_eos=True), tf.int32)
    target = tf.ragged.constant(subwords.encode(targets, add_bos=True, add_eos=True), tf.int32)
    data = tf.data.Dataset.from_tensor_slices((source, target[:, :-1], target[:, 1:])).batch(64)
    data = data.map(lambda *ragged: [ids.to_tensor() for ids in ragged])
    return data.map(lambda *ids: (ids[:2], ids[2])).cache().shuffle(len(data))


# The model. The decoder starts from the concatenated states of both directions of the encoder.
# Keras's default initial embeddings, within 0.05 of 0, are so small that they would slow training.

units, wide = options.units, keras.initializers.RandomNormal(stddev=1.0)
source = keras.Input((None,), dtype="int32")
target = keras.Input((None,), dtype="int32")
embed = keras.layers.Embedding(options.vocab_size, units, wide, mask_zero=True)
gru = keras.layers.GRU(units // 2, return_sequences=True, return_state=True)
encoder = keras.layers.Bidirectional(gru)
decoder = AttentionDecoder(
    keras.layers.GRUCell(units), KMemoryAttention(num_slots=32), mixing_units=units, dropout=0.2
)
to_logits = keras.layers.Dense(options.vocab_size)

encoded, *states = encoder(embed(source))
decoded = decoder(embed(target), encoded, initial_state=states)
model = keras.Model([source, target], to_logits(decoded))
train, valid = batches(train_pairs), batches(valid_pairs)
rate = keras.optimizers.schedules.CosineDecay(2e-3, options.epochs * len(train))
model.compile(keras.optimizers.Adam(rate, clipnorm=1.0), TokenCrossEntropy())
model.fit(train, validation_data=valid, epochs=options.epochs, shuffle=False, verbose=2)

# Beam search, a hundred sources at a time.

searchable = Searchable.from_model(model)
sources, references = zip(*test_pairs, strict=True)
translations = []
for first in range(0, len(sources), 100):
    ids = subwords.encode(list(sources[first : first + 100]), add_eos=True)
    found = beam_search(searchable, tf.ragged.constant(ids).to_tensor(), beam_size=5)
    translations += subwords.decode(np.array(found.tokens)[:, 0].tolist())

for pair, translation in zip(test_pairs[:5], translations, strict=False):
    print(*pair, translation, sep="\n    ")
bleu = sacrebleu.BLEU()
score = bleu.corpus_score(translations, [list(references)]).score
minutes = (time.perf_counter() - start) / 60
print(f"Learned from {len(train_pairs):,} pairs, translated {len(sources):,} others.")
print(f"{score:.1f} BLEU ({bleu.get_signature()}) after {minutes:.1f} minutes.")
