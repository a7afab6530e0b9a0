"""Translates standard input without a server: python saved_model_client.py EXPORT_DIR/1."""

import sys

import tensorflow as tf
import tensorflow_text  # noqa: F401  registers the model's operations

(folder,) = sys.argv[1:]
translate = tf.saved_model.load(folder).signatures["serving_default"]
with open(0, encoding="utf-8", newline="\n") as stream:
    texts = [line.removesuffix("\n").rstrip("\r") for line in stream]
for first in range(0, len(texts), 100):
    for translations in translate(text=tf.constant(texts[first : first + 100]))["translations"]:
        print(translations[0].numpy().decode())
