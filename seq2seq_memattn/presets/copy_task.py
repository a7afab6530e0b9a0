"""The copy task of Britz, Guan and Luong (2017), Table 1: copy_20_none to copy_200_bahdanau.

Models and training follow section 4.1.1 of the paper and google/seq2seq: Adam with learning rate
1e-4, 200,000 updates. The options are the same at every length; the length in a preset's name only
says which data the preset is meant for. The softmax of equation 5 is over the source, not over the
slots (results/ambiguities.md).
"""

from seq2seq_memattn.config import ModelConfig
from seq2seq_memattn.presets.preset import Preset

LENGTHS = (20, 50, 100, 200)
ATTENTIONS = {
    "none": "none",
    "k1": "k_memory:1",
    "k4": "k_memory:4",
    "k16": "k_memory:16",
    "k32": "k_memory:32",
    "k64": "k_memory:64",
    "bahdanau": "bahdanau",
}

PRESETS = {
    f"copy_{length}_{name}": Preset(ModelConfig(attention=attention, normalise_over="time"))
    for length in LENGTHS
    for name, attention in ATTENTIONS.items()
}
