"""Converts dates in many formats to ISO 8601, character by character, with Bahdanau's attention.

Shows a functional model with `AttentionDecoder`, trained by `fit`, greedy search with the layers of
this model, and a picture of the attention. Test dates do not occur in the training data.

    python examples/dates.py

On two cores of a Xeon with nothing else running, this took 1.1 minutes. Among the last lines:

    Wednesday, 18 January 2017 -> 2017-01-18
    100.0% of 1,000 new dates exact after 1.1 minutes.
"""

import argparse
import datetime
import random
import time

import keras
import numpy as np

from seq2seq_memattn import (
    AttentionDecoder,
    BahdanauAttention,
    Searchable,
    TokenCrossEntropy,
    beam_search,
    greedy_search,
    plots,
)

parser = argparse.ArgumentParser(description="Learns to read dates.")
parser.add_argument("--examples", type=int, default=20_000, help="dates to train on")
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--picture", default="dates.png", help="file for the attention map")
options = parser.parse_args()
keras.utils.set_random_seed(options.seed)
start = time.perf_counter()

# The data: a hundred years, so that two digits identify a year. In numeric dates, the day is first.

FORMATS = (
    "{0.day} {0:%b} {0.year}",
    "{0:%A}, {0.day} {0:%B} {0.year}",
    "{0:%a} {0.day} {0:%b} {0:%y}",
    "{0:%B} {0.day}, {0.year}",
    "{0:%d/%m/%y}",
    "{0:%d.%m.%Y}",
    "{0.day}.{0.month}.{0.year}",
    "{0.year}, {0:%B} {0.day}",
    "{0:%d%b%Y}",
)
FIRST_DAY, NUM_DAYS, NUM_TESTED = datetime.date(1969, 1, 1).toordinal(), 36_525, 1_000
numbers = random.sample(range(NUM_DAYS), options.examples + NUM_TESTED)
days = [datetime.date.fromordinal(FIRST_DAY + number) for number in numbers]
texts = [random.choice(FORMATS).format(day) for day in days]
iso_dates = [day.isoformat() for day in days]

# Characters as ids. 0 is padding, 1 starts a target, 2 ends a sequence.

CHARACTERS = sorted(set("".join(texts + iso_dates)))
IDS = {character: index for index, character in enumerate(CHARACTERS, start=3)}
VOCAB_SIZE = len(CHARACTERS) + 3


def to_ids(lines: list[str]) -> np.ndarray:
    """The ids of each line, then the end token and padding: int32 [lines, longest line + 1]."""
    ids = np.zeros([len(lines), max(map(len, lines)) + 1], "int32")
    for row, line in zip(ids, lines, strict=True):
        row[: len(line) + 1] = [*(IDS[character] for character in line), 2]
    return ids


sources, targets = to_ids(texts), to_ids(iso_dates)
target_inputs = np.pad(targets[:, :-1], [(0, 0), (1, 0)], constant_values=1) * (targets > 0)
train, test = slice(options.examples), slice(options.examples, None)

# The encoder reads a date forwards and backwards. For each character that it writes, the decoder
# attends to the encoder's outputs. `mask_zero` hides the padding.

source = keras.Input((None,), dtype="int32")
target = keras.Input((None,), dtype="int32")
embed = keras.layers.Embedding(VOCAB_SIZE, 32, mask_zero=True)
encoder = keras.layers.Bidirectional(keras.layers.GRU(64, return_sequences=True))
decoder = AttentionDecoder(keras.layers.GRUCell(128), BahdanauAttention(64), mixing_units=64)
to_logits = keras.layers.Dense(VOCAB_SIZE)

encoded = encoder(embed(source))
model = keras.Model([source, target], to_logits(decoder(embed(target), encoded)))
model.compile(keras.optimizers.Adam(3e-3), TokenCrossEntropy())
model.fit(
    [sources[train], target_inputs[train]],
    targets[train],
    batch_size=64,
    epochs=options.epochs,
    validation_split=0.02,
    verbose=2,
)

# Search feeds back the characters that it has written, not the true ones.
searchable = Searchable.from_model(model)
found = np.array(greedy_search(searchable, sources[test], max_length=11).tokens)
written = ["".join(CHARACTERS[index - 3] for index in ids if index > 2) for ids in found]
exact = np.mean([date == wanted for date, wanted in zip(written, iso_dates[test], strict=True)])

# The alignment of the longest date. A beam of one hypothesis is greedy search.

longest = int(np.argmax([len(text) for text in texts[test]]))
text, date = texts[test][longest], written[longest]
result = beam_search(searchable, sources[test][[longest]], beam_size=1, return_alignments=True)
alignment = np.array(result.alignments)[0, 0, : len(date), : len(text)]
letters, title = list(text.replace(" ", "\N{OPEN BOX}")), f"Dates: Bahdanau, {text!r}"
plots.save(plots.alignment(alignment, letters, list(date), title), options.picture)

for text, date in zip(texts[-5:], written[-5:], strict=True):
    print(f"{text:>28} -> {date}")
minutes = (time.perf_counter() - start) / 60
print(f"Learned from {options.examples:,} dates; drew the attention map of one: {options.picture}.")
print(f"{exact:.1%} of {NUM_TESTED:,} new dates exact after {minutes:.1f} minutes.")
