"""Hand-made exports that write a sentence in capitals, with a simple, known attention."""

import json
from pathlib import Path
from typing import Any

import tensorflow as tf

from seq2seq_memattn.attention.registry import label

NUM_SLOTS = 8
LONGEST = 300  # words; longer sources are reported as cut
MOST, REST = 0.93, 0.01  # the weight of the one piece or slot that is read, and of each other
SPACE_MARK, END = "\u2581", "</s>"


class Capitals(tf.Module):
    """A model that writes each word in capitals; each word is a piece.

    Args:
        has_slots: True: source piece i writes slot i modulo 8, and target piece i reads it. False:
            target pieces attend to the source pieces in reverse order.
    """

    def __init__(self, has_slots: bool) -> None:
        super().__init__()
        self.has_slots = has_slots

    def translate(self, text: tf.Tensor) -> dict[str, tf.Tensor]:
        """The outputs of `serving_default`."""
        words = tf.cast(tf.strings.split(text).row_lengths(), tf.int32)
        capitals = tf.strings.upper(text, encoding="utf-8")
        numbers = tf.ones_like(words, tf.float32)[:, None] * [[-0.5, -2.0, -4.0]]
        return {
            "translations": tf.stack([capitals, capitals + "!", text], axis=1),
            "log_probs": numbers,
            "num_tokens": (words + 1)[:, None] * [[1, 1, 1]],
            "source_is_cut": words > LONGEST,
        }

    def align(self, text: tf.Tensor) -> dict[str, tf.Tensor]:
        """The outputs of `align`."""
        words = tf.strings.split(text)
        ends = tf.fill([tf.size(text), 1], END)
        marked = words.with_flat_values(SPACE_MARK + words.flat_values)
        source = tf.concat([marked, ends], axis=1).to_tensor("")
        capitals = tf.strings.upper(marked.flat_values, encoding="utf-8")
        target = tf.concat([marked.with_flat_values(capitals), ends], axis=1).to_tensor("")
        outputs = self.translate(text) | {"source_pieces": source, "target_pieces": target}
        length = tf.shape(source)[1]
        if not self.has_slots:
            backwards = tf.one_hot(tf.range(length)[::-1], length, MOST, REST)
            return outputs | {"alignments": _for_each(backwards, text)}
        slots = tf.one_hot(tf.range(length) % NUM_SLOTS, NUM_SLOTS, MOST, REST)
        alpha = beta = _for_each(slots, text)
        alignments = tf.matmul(beta, alpha, transpose_b=True)
        return outputs | {"alpha": alpha, "beta": beta, "alignments": alignments}


def _for_each(values: tf.Tensor, text: tf.Tensor) -> tf.Tensor:
    return tf.tile(values[None], [tf.size(text), 1, 1])


def export_capitals(
    folder: Path, has_slots: bool = True, has_align: bool = True, **said: Any
) -> Path:
    """Exports version 1 of a `Capitals` model.

    Args:
        folder: the model's folder, which is created.
        has_slots: see `Capitals`.
        has_align: whether to export the signature "align".
        said: entries of export.json that replace the usual ones.

    Returns:
        The folder.
    """
    model = Capitals(has_slots)
    text = tf.TensorSpec([None], tf.string, name="text")
    signatures = {"serving_default": tf.function(model.translate, input_signature=[text])}
    if has_align:
        signatures["align"] = tf.function(model.align, input_signature=[text])
    version = folder / "1"
    tf.saved_model.save(model, str(version), signatures=signatures)
    attention = f"k_memory:{NUM_SLOTS}" if has_slots else "bahdanau"
    about = {
        "attention": attention,
        "attention_label": label(attention),
        "source_language": "en",
        "target_language": "de",
        "beam_size": 10,
        "n_best": 3,
        "kind": "subwords",
        "example": "A man rides a bike.",
    }
    (version / "assets.extra").mkdir()
    (version / "assets.extra" / "export.json").write_text(json.dumps(about | said))
    return folder
