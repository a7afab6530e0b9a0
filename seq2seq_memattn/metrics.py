"""BLEU, as sacrebleu computes it."""

from collections.abc import Sequence
from typing import NamedTuple

from sacrebleu.metrics.bleu import BLEU


class Bleu(NamedTuple):
    """A score with what is needed to reproduce it.

    Fields:
        score: float, 0 to 100.
        signature: sacrebleu's.
    """

    score: float
    signature: str


def tokenised_bleu(hypotheses: Sequence[str], references: Sequence[str]) -> Bleu:
    """BLEU of tokenised lines, equal to multi-bleu.perl of Moses to two decimals.

    Raises:
        ValueError: if the numbers of lines differ, or there is none.
    """
    if len(hypotheses) != len(references):
        raise ValueError(
            f"expected as many references as hypotheses, {len(hypotheses)}; got {len(references)}"
        )
    if not references:
        raise ValueError("expected at least one reference; got none")
    metric = BLEU(tokenize="none", smooth_method="none", force=True)
    score = metric.corpus_score(list(hypotheses), [list(references)])
    return Bleu(score.score, str(metric.get_signature()))


def bleu_by_length(
    hypotheses: Sequence[str], references: Sequence[str], num_groups: int = 5
) -> list[dict[str, float]]:
    """BLEU of groups of equal numbers of lines, by the length of their references.

    Lines shorter than four tokens have no 4-grams; a group of such lines alone scores 0.

    Args:
        hypotheses, references: tokenised lines.
        num_groups: int > 0.

    Returns:
        For each group, `shortest` and `longest` reference in tokens, `lines`, `bleu` and
        `exact`, the share of lines that equal their reference.
    """
    lengths = [len(line.split()) for line in references]
    order = sorted(range(len(references)), key=lengths.__getitem__)
    groups = []
    for group in range(num_groups):
        chosen = order[group * len(order) // num_groups : (group + 1) * len(order) // num_groups]
        if not chosen:
            continue
        ours, theirs = [hypotheses[i] for i in chosen], [references[i] for i in chosen]
        exact = sum(a == b for a, b in zip(ours, theirs, strict=True)) / len(chosen)
        groups.append(
            {
                "shortest": lengths[chosen[0]],
                "longest": lengths[chosen[-1]],
                "lines": len(chosen),
                "bleu": tokenised_bleu(ours, theirs).score,
                "exact": exact,
            }
        )
    return groups
