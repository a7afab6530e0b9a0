"""Alignments of a trained model: computes them for sentences and draws them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from seq2seq_memattn.vocabulary import Vocabulary

END = "</s>"


class Aligned(NamedTuple):
    """A sentence, its best translation and their alignment.

    Fields:
        text: the translation.
        source_tokens, target_tokens: the tokens. The source has its end token. The target has one
            only if the search reached it.
        alignment: float [target tokens, source tokens].
        scored: bool [target tokens, source tokens]; None if all positions were scored.
        alpha: float [source tokens, K]. Encoder scores of K-memory; None for other attentions.
        beta: float [target tokens, K]. Decoder scores of K-memory; None for other attentions.
    """

    text: str
    source_tokens: list[str]
    target_tokens: list[str]
    alignment: np.ndarray
    scored: np.ndarray | None
    alpha: np.ndarray | None
    beta: np.ndarray | None


def align(run: Any, translator: Any, text: str, name: str = "--text") -> Aligned:
    """Translates one sentence and returns it with its alignment.

    Args:
        run: `Run`.
        translator: a `Translator` of the run, with return_alignments=True.
        text: the sentence, tokenised and cased like the training text.
        name: name of the sentence in errors.

    Raises:
        ValueError: if the sentence is empty, the vocabulary cannot encode it, or no translation
            fits the rules of the search.
    """
    (best,) = translator([text], 1, name)[0]
    if best.hypothesis is None:
        raise ValueError(f"{name}: expected a sentence, got nothing to translate")
    alignment = best.hypothesis.alignment
    if not len(alignment):
        raise ValueError(f"{name}: no translation fits the rules of the search")
    source = run.source_vocabulary.encode(text)[: alignment.shape[1] - 1]  # cut as the model saw it
    source_tokens = [*_tokens(run.source_vocabulary, source), END]
    target_tokens = [*_tokens(run.target_vocabulary, best.hypothesis.tokens), END]
    # The softmax of a scored position is above 0, unless the position's energy is so far below the
    # highest (by about 100) that float32 underflows.
    scored = alignment > 0 if run.model.config.threshold else None
    alpha = _alpha(run.model, source)
    return Aligned(
        best.text,
        source_tokens,
        target_tokens[: len(alignment)],
        alignment,
        scored,
        alpha,
        None if alpha is None else best.hypothesis.scores,
    )


def _alpha(model: Any, source: Sequence[int]) -> np.ndarray | None:
    """Encoder scores of a source: float [source tokens, K]; None unless the model is K-memory."""
    from keras import ops

    from seq2seq_memattn.attention.k_memory import KMemory
    from seq2seq_memattn.data.batching import with_ends

    memory, _ = model.encode(with_ends([np.asarray(source, np.int32)]))
    if not isinstance(memory, KMemory):
        return None
    return np.asarray(ops.convert_to_numpy(memory.alpha)[0], np.float32)


def draw(aligned: Mapping[str, Aligned], title: str, path: Path) -> list[Path]:
    """Draws alignments as one figure, each under its name; returns the files written."""
    from seq2seq_memattn import plots

    panels = [
        plots.Panel(one.alignment, one.source_tokens, one.target_tokens, name, one.scored)
        for name, one in aligned.items()
    ]
    return plots.save(plots.alignments(panels, title), path)


def draw_slots(aligned: Aligned, title: str, max_slots: int, path: Path) -> list[Path]:
    """Draws what each slot of a K-memory contributes to an alignment; returns the files written.

    Args:
        aligned: the sentence and its alignment.
        title: title of the figure.
        max_slots: int > 0. How many of the most used slots to show.
        path: path of the figure.

    Raises:
        ValueError: if the attention is not K-memory.
    """
    from seq2seq_memattn import plots

    if aligned.alpha is None or aligned.beta is None:
        raise ValueError("--slots_output: expected a run of K-memory, got one without slots")
    figure = plots.slots(
        aligned.alpha, aligned.beta, aligned.source_tokens, aligned.target_tokens, max_slots, title
    )
    return plots.save(figure, path)


def _tokens(vocabulary: Vocabulary, ids: Any) -> list[str]:
    return [vocabulary.decode([int(token)]) for token in ids]
