"""Draws where a model looks: python -m experiments.draw_alignment --run_dir=D --text=T --output=F.

Source downwards, target to the right, as in figures 6 to 8 of the memory paper; of K-memory, which
never looks at the source again, it is the product of its scores (section 5).
"""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from absl import flags

from experiments import cli, decoding_flags
from experiments.copy_rows import label
from seq2seq_memattn.vocabulary import Vocabulary

END = "</s>"


class Aligned(NamedTuple):
    """A sentence, its best translation and their alignment.

    Fields:
        text: the translation.
        source_tokens, target_tokens: with the end token; the target's only if it was reached.
        alignment: float [target tokens, source tokens].
    """

    text: str
    source_tokens: list[str]
    target_tokens: list[str]
    alignment: np.ndarray


def align(run: Any, translator: Any, text: str) -> Aligned:
    """Translates one sentence.

    Args:
        run: `Run`.
        translator: `Translator` of the run that returns alignments.
        text: the sentence.

    Raises:
        ValueError: if there is nothing to translate, or the vocabulary cannot encode it.
    """
    (text,) = run.text_form.as_trained([text], run.directory)
    (best,) = translator([text], 1, "--text")[0]
    if best.hypothesis is None:
        raise ValueError("--text: expected a sentence, got nothing to translate")
    alignment = best.hypothesis.alignment
    source = run.source_vocabulary.encode(text)[: alignment.shape[1] - 1]  # it may have been cut
    source_tokens = [*_tokens(run.source_vocabulary, source), END]
    target_tokens = [*_tokens(run.target_vocabulary, best.hypothesis.tokens), END]
    return Aligned(best.text, source_tokens, target_tokens[: len(alignment)], alignment)


def draw(aligned: Aligned, title: str, path: Path) -> list[Path]:
    """Draws an alignment; returns the files."""
    from seq2seq_memattn import plots

    figure = plots.alignment(aligned.alignment, aligned.source_tokens, aligned.target_tokens, title)
    return plots.save(figure, path)


def _tokens(vocabulary: Vocabulary, ids: Any) -> list[str]:
    return [vocabulary.decode([int(token)]) for token in ids]


def main(arguments: list[str]) -> None:
    """Draws from flags."""
    del arguments
    options = flags.FLAGS
    path = Path(options.output)
    if path.suffix not in ("", ".png", ".svg"):
        raise ValueError(f"--output: expected the ending .png, .svg or none; got {options.output}")
    run, translator = decoding_flags.make_translator(return_alignments=True)
    aligned = align(run, translator, options.text)
    decoding_flags.report_cut(translator.sources)
    files = draw(aligned, label(run.model.config.attention), path)
    cli.print_result({"text": aligned.text, "figures": list(map(str, files))})


if __name__ == "__main__":
    decoding_flags.define()
    flags.DEFINE_string("text", None, "the sentence", required=True)
    flags.DEFINE_string("output", None, "figure: .png, .svg, or without ending both", required=True)
    cli.run(main)
