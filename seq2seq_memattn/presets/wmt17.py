"""WMT'17 translation of Britz, Guan and Luong (2017), Table 2: wmt17_en_de_k64_pe and others.

The models have 512 units and train for 1,000,000 updates, as in the paper. Their score functions
are those of Figure 4: sigmoid in the encoder and softmax in the decoder. Table 2 reports the
best of four pairs of score functions and does not say which pair. `_pe` means position encodings.
"""

from seq2seq_memattn.config import ModelConfig, TrainingConfig
from seq2seq_memattn.presets.preset import Preset

PAIRS = ("en_cs", "en_de", "en_fi", "en_tr")
PIECES = 16_000  # size of the joint vocabulary of both languages
# Of the three ways to understand section 3.2 of the paper, "mean_one" keeps the scale of the
# energies (results/ambiguities.md).
ATTENTIONS = {
    "k32": {"attention": "k_memory:32"},
    "k64": {"attention": "k_memory:64"},
    "k32_pe": {"attention": "k_memory:32", "position_encoding": "mean_one"},
    "k64_pe": {"attention": "k_memory:64", "position_encoding": "mean_one"},
    "bahdanau": {"attention": "bahdanau"},
}

PRESETS = {
    f"wmt17_{pair}_{name}": Preset(
        ModelConfig(
            source_vocab_size=PIECES,
            target_vocab_size=PIECES,
            embedding_dim=512,
            encoder_units=512,
            decoder_units=512,
            attention_units=512,
            encoder_score="sigmoid",
            **attention,  # type: ignore[arg-type]
        ),
        TrainingConfig(num_updates=1_000_000, checkpoint_minutes=30.0, valid_examples=3000),
    )
    for pair in PAIRS
    for name, attention in ATTENTIONS.items()
}
