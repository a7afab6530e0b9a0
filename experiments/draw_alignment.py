"""Draws where a model looks: python -m experiments.draw_alignment --run_dir=D --text=T --output=F.

Source downwards, target to the right, as in figures 6 to 8 of the memory paper; of K-memory, which
never looks at the source again, it is the product of its scores (section 5). What flexible
attention with a threshold does not score is grey, as in figure 4 of Shu and Nakayama (2017). In
place of a text, `--source=F --lines=3,14` takes lines of a file in the form of the training text.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from absl import flags

from experiments import cli, decoding_flags
from experiments.copy_rows import label
from seq2seq_memattn.data.text_files import read_lines
from seq2seq_memattn.vocabulary import Vocabulary

END = "</s>"


class Aligned(NamedTuple):
    """A sentence, its best translation and their alignment.

    Fields:
        text: the translation.
        source_tokens, target_tokens: with the end token; the target's only if it was reached.
        alignment: float [target tokens, source tokens].
        scored: bool [target tokens, source tokens], or None if everything was scored.
    """

    text: str
    source_tokens: list[str]
    target_tokens: list[str]
    alignment: np.ndarray
    scored: np.ndarray | None


def align(run: Any, translator: Any, text: str, name: str = "--text") -> Aligned:
    """Translates one sentence.

    Args:
        run: `Run`.
        translator: `Translator` of the run that returns alignments.
        text: the sentence, in the form of the training text.
        name: what errors call it.

    Raises:
        ValueError: if there is nothing to translate, or the vocabulary cannot encode it.
    """
    (best,) = translator([text], 1, name)[0]
    if best.hypothesis is None:
        raise ValueError(f"{name}: expected a sentence, got nothing to translate")
    alignment = best.hypothesis.alignment
    source = run.source_vocabulary.encode(text)[: alignment.shape[1] - 1]  # it may have been cut
    source_tokens = [*_tokens(run.source_vocabulary, source), END]
    target_tokens = [*_tokens(run.target_vocabulary, best.hypothesis.tokens), END]
    # The softmax of what was scored is above 0, but for energies hundreds below the highest.
    scored = alignment > 0 if run.model.config.threshold else None
    return Aligned(best.text, source_tokens, target_tokens[: len(alignment)], alignment, scored)


def draw(aligned: Sequence[Aligned], title: str, path: Path) -> list[Path]:
    """Draws alignments; returns the files."""
    from seq2seq_memattn import plots

    panels = [
        plots.Panel(one.alignment, one.source_tokens, one.target_tokens, "", one.scored)
        for one in aligned
    ]
    return plots.save(plots.alignments(panels, title), path)


def read_texts(run: Any) -> dict[str, str]:
    """The sentences that the flags name, in the form of the training text, by what they are.

    Raises:
        ValueError: for flags that do not fit together, or lines that the file has not.
    """
    options = flags.FLAGS
    if (options.text is None) == (options.source is None) or bool(options.source) != bool(
        options.lines
    ):
        raise ValueError("--text: expected it, or --source and --lines")
    if options.text is not None:
        return {"--text": run.text_form.as_trained([options.text], run.directory)[0]}
    lines = read_lines(options.source)
    wanted = cli.positive_numbers("lines", options.lines)
    for number in wanted:
        if number > len(lines):
            raise ValueError(f"--lines: expected at most {len(lines)}, got {number}")
    return {f"{options.source}, line {number}": lines[number - 1] for number in wanted}


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
    texts = read_texts(run)
    aligned = [align(run, translator, text, name) for name, text in texts.items()]
    decoding_flags.report_cut(translator.sources)
    files = draw(aligned, label(run.model.config.attention), path)
    cli.print_result({"texts": [one.text for one in aligned], "figures": list(map(str, files))})


if __name__ == "__main__":
    decoding_flags.define()
    flags.DEFINE_string("text", None, "the sentence, as people write it")
    flags.DEFINE_string("source", None, "a file of sentences, as the model was trained on")
    flags.DEFINE_list("lines", [], "which lines of it, counted from 1")
    flags.DEFINE_string("output", None, "figure: .png, .svg, or without ending both", required=True)
    cli.run(main)
