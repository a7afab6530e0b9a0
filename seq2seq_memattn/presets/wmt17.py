"""WMT'17 translation of Britz, Guan and Luong (2017), Table 2: wmt17_en_de_k64_pe and others.

The models have 512 units and train for 1,000,000 updates, as in the paper. Their score functions
are those of Figure 4: sigmoid in the encoder and softmax in the decoder. Table 2 reports the
best of four pairs of score functions and does not say which pair. `_pe` means position encodings.
"""

from seq2seq_memattn.config import ModelConfig, TrainingConfig
from seq2seq_memattn.presets.preset import Preset
from seq2seq_memattn.presets.small_text import ATTENTIONS, OF_TABLE_2

PAIRS = ("en_cs", "en_de", "en_fi", "en_tr")
PIECES = 16_000  # size of the joint vocabulary of both languages

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
            **ATTENTIONS[name],
        ),
        TrainingConfig(num_updates=1_000_000, checkpoint_minutes=30.0, valid_examples=3000),
    )
    for pair in PAIRS
    for name in OF_TABLE_2
}
