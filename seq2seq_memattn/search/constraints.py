"""What hypotheses must not write: banned tokens, repeated n-grams, an early end, a wrong prefix."""

from typing import Any

import numpy as np
from keras import ops

from seq2seq_memattn.search.rules import Rules
from seq2seq_memattn.search.top_successors import DEAD
from seq2seq_memattn.vocabulary import END_ID, PAD_ID


def allowed(logits: Any, history: Any, step: Any, rules: Rules) -> Any:
    """Sets the logits of ruled-out tokens to `DEAD` or below.

    The logits of the other tokens do not change: search computes their log-probabilities over the
    whole vocabulary. Inside a prefix, only its next token may follow, and no other rule applies.

    Args:
        logits: float32 [batch, beam, vocab_size].
        history: int32 [batch, beam, steps]. Tokens written so far, then padding. Only read for
            `no_repeat_ngram`.
        step: int32 scalar. Steps taken before.
        rules: the rules of the search.
    """
    options, sources = rules
    own = logits
    if options.banned:
        size = logits.shape[-1]
        if max(options.banned) >= size:
            # For a model that is not one of our own, the vocabulary size is known only here.
            raise ValueError(f"`banned`: expected ids in 0..{size - 1}; got {max(options.banned)}.")
        bans = np.zeros(size, np.float32)
        bans[list(options.banned)] = DEAD
        logits = logits + bans
    if options.no_repeat_ngram:
        logits = _without(logits, repeating(history, step, options.no_repeat_ngram))
    tokens = ops.arange(logits.shape[-1], dtype="int32")
    if not isinstance(sources.least, tuple):
        is_early = (step < sources.least)[:, :, None] & (tokens == END_ID)
        logits = ops.where(is_early, DEAD, logits)
    if not isinstance(sources.prefix, tuple):
        last = ops.shape(sources.prefix)[1] - 1
        forced = ops.take(sources.prefix, ops.minimum(step, last), axis=1)[:, None, None]
        inside = (forced != PAD_ID) & (step <= last)
        logits = ops.where(inside, ops.where(tokens == forced, own, DEAD), logits)
    return logits


def repeating(history: Any, step: Any, size: int) -> Any:
    """The tokens that would repeat an n-gram of a hypothesis: int32 [batch, beam, n].

    Args:
        history: int32 [batch, beam, steps]. Tokens written so far, then padding; at least as many
            steps as an n-gram has tokens.
        step: int32 scalar. Steps taken before.
        size: int > 0. Tokens of an n-gram.

    Returns:
        Tokens, and padding in place of those that would repeat nothing.
    """
    num_places = ops.shape(history)[2] - size + 1
    repeats = ops.arange(num_places, dtype="int32") <= step - size
    for offset in range(size - 1):
        last = ops.take(history, ops.maximum(step - size + 1 + offset, 0), axis=2)
        repeats = repeats & (history[:, :, offset : offset + num_places] == last[:, :, None])
    return ops.where(repeats, history[:, :, size - 1 :], PAD_ID)


def _without(logits: Any, tokens: Any) -> Any:
    """Logits with those of the given tokens [batch, beam, n] set to `DEAD`."""
    batch, beam_size, vocab_size = ops.shape(logits)
    count = batch * beam_size
    tokens = ops.reshape(tokens, (count, ops.shape(tokens)[2]))
    rows = ops.arange(count, dtype="int32")[:, None] + ops.zeros_like(tokens)
    index = ops.reshape(ops.stack([rows, tokens], axis=2), (-1, 2))
    dead = ops.full(ops.shape(index)[:1], DEAD, dtype="float32")
    found = ops.scatter_update(ops.reshape(logits, (count, vocab_size)), index, dead)
    return ops.reshape(found, (batch, beam_size, vocab_size))
