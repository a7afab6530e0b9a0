"""OpenNMT-py with its own encoder, decoder, beam search and loss.

`--attention` is `luong` (OpenNMT-py's "general") or `bahdanau` (its "mlp"). OpenNMT-py halves the
units of each encoder direction. The option `full_units` doubles all widths except those of the
embeddings: each encoder direction then has the setting's units, and the decoder has twice as many
units as in other systems. `int8` decodes with int8 matrix products, as OpenNMT-py's
`--precision int8` does.
"""

import warnings
from importlib.metadata import version
from typing import Any

import numpy as np
import torch

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # OpenNMT-py also imports packages for other tasks
    from onmt.decoders.decoder import InputFeedRNNDecoder
    from onmt.encoders.rnn_encoder import RNNEncoder
    from onmt.models.model import NMTModel
    from onmt.modules import Embeddings
    from onmt.translate import GNMTGlobalScorer
    from onmt.translate.translator import Translator
    from onmt.utils.loss import LossCompute

from experiments.benchmarks.peers.protocol import (
    LONGEST_NORMAL,
    Batch,
    Decode,
    Setting,
    System,
    Update,
    run,
    until_end,
)
from experiments.benchmarks.peers.torch_update import make_update

UNKNOWN, PADDING, START, END = range(4)
NUM_SPECIAL = 4
# OpenNMT-py's names. The last one, a line break within a sentence, does not occur.
SPECIAL = {"<unk>": UNKNOWN, "<blank>": PADDING, "<s>": START, "</s>": END, "｟newline｠": UNKNOWN}
SCORES = {"luong": "general", "bahdanau": "mlp"}
CERTAIN = 1e3  # a log-probability larger in absolute value than that of any hypothesis


class Vocabulary(dict[str, int]):
    """A vocabulary with the one method that the translator calls."""

    def lookup_token(self, token: str) -> int:
        """Returns the id of a token."""
        return self[token]


class ForcedTranslator(Translator):
    """A translator that writes the end token at the length of the source and not before."""

    def _decode_and_generate(
        self, decoder_in: Any, enc_out: Any, batch: Any, src_len: Any, **others: Any
    ) -> tuple[Any, Any]:
        log_probs, attention = super()._decode_and_generate(
            decoder_in, enc_out, batch, src_len, **others
        )
        is_due = src_len <= others["step"]
        log_probs[:, END] = torch.where(is_due, CERTAIN, -CERTAIN)
        return log_probs, attention


def make_model(setting: Setting) -> Any:
    """Builds the model of a setting from OpenNMT-py's standard layers."""
    torch.manual_seed(0)
    torch.set_num_threads(setting.threads)
    units = setting.units * (2 if "full_units" in setting.option else 1)
    size = setting.vocab + NUM_SPECIAL
    source, target = (Embeddings(setting.units, size, PADDING) for _ in range(2))
    encoder = RNNEncoder("LSTM", True, 2, units, 0.0, source)
    score = SCORES[setting.attention]
    decoder = InputFeedRNNDecoder("LSTM", True, 2, units, score, embeddings=target)
    model = NMTModel(encoder, decoder)
    model.generator = torch.nn.Linear(units, size)
    for parameter in model.parameters():
        torch.nn.init.uniform_(parameter, -0.1, 0.1)
    return model


def _tensors(batch: Batch) -> dict[str, Any]:
    ids = torch.from_numpy(batch.ids(NUM_SPECIAL, PADDING))
    return {"src": ids[:, :, None], "srclen": torch.from_numpy(batch.lengths)}


def make_decoder(setting: Setting) -> Decode:
    """Returns a function that decodes with OpenNMT-py's translator."""
    mean, _, deviation = setting.lengths.partition("+-")
    longest = LONGEST_NORMAL if deviation else int(mean)
    symbols = {f"symbol {i}": i + NUM_SPECIAL for i in range(setting.vocab)}
    vocabulary = Vocabulary(SPECIAL | symbols)
    model = make_model(setting).eval()
    if "int8" in setting.option:
        torch.ao.quantization.quantize_dynamic(model, dtype=torch.qint8, inplace=True)
    translator = ForcedTranslator(
        model,
        {"src": vocabulary, "tgt": vocabulary, "decoder_start_token": "<s>"},
        beam_size=setting.beam,
        max_length=longest + 1,
        max_length_ratio=0,
        dump_beam="",
        ban_unk_token=True,
        global_scorer=GNMTGlobalScorer(0.0, 0.0, None, None),
    )

    def decode(batch: Batch) -> list[list[int]]:
        found = translator.translate_batch(_tensors(batch), attn_debug=False)
        rows = (hypotheses[0].tolist() for hypotheses in found["predictions"])
        return until_end(rows, END, NUM_SPECIAL)

    return decode


def make_trainer(setting: Setting) -> Update:
    """Returns a function that trains with OpenNMT-py's loss and PyTorch's Adam."""
    if "int8" in setting.option:
        raise ValueError("--option int8: expected decoding, got --train")
    model = make_model(setting).train()
    criterion = torch.nn.CrossEntropyLoss(ignore_index=PADDING, reduction="sum")
    compute_loss = LossCompute(criterion, model.generator)

    def loss_of(batch: Batch) -> Any:
        tensors = _tensors(batch)
        source, lengths = tensors["src"], tensors["srclen"]
        target = torch.nn.functional.pad(source, (0, 0, 1, 1), value=PADDING)
        target[:, 0] = START
        target[torch.arange(len(lengths)), lengths + 1] = END
        outputs, attentions = model(source, target, lengths)
        loss, _ = compute_loss({**tensors, "tgt": target}, outputs, attentions)
        return loss / (lengths + 1).sum()

    return make_update(model, loss_of)


SYSTEM = System(
    "opennmt-py",
    {
        "OpenNMT-py": version("OpenNMT-py"),
        "torch": torch.__version__,
        "numpy": np.__version__,
    },
    make_decoder,
    make_trainer,
    attentions=("luong", "bahdanau"),
    options=("full_units", "int8"),
)

if __name__ == "__main__":
    run(SYSTEM)
