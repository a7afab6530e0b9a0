"""Corpus BLEU by the definition of multi-bleu.perl, with one reference per line."""

import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

MAX_ORDER = 4  # n-grams of 1 to 4 tokens, as in Papineni et al. (2002)


class BLEU(NamedTuple):
    """BLEU of a corpus and its parts."""

    score: float  # 0 to 100
    precisions: tuple[float, ...]  # fractions, for n-grams of 1 to 4 tokens
    brevity_penalty: float
    system_length: int  # tokens
    reference_length: int  # tokens


def corpus_bleu(hypotheses: Sequence[str], references: Sequence[str]) -> BLEU:
    """BLEU of Papineni et al. (2002), section 2.3, over the whole corpus, without smoothing.

    exp(min(0, 1 - r/c)) * (p_1 p_2 p_3 p_4) ** (1/4), where p_n is the share of the hypotheses'
    n-grams that occur in the reference of their line. An n-gram counts at most as often as it
    occurs in the reference. p_n is 0 if the corpus has no n-gram. Only ASCII white space separates
    tokens.

    Args:
        hypotheses: One line per sentence.
        references: As many lines.

    Returns:
        BLEU; 0 if any precision is 0 or either side is empty.

    Raises:
        ValueError: if the numbers of lines differ.
    """
    if len(hypotheses) != len(references):
        raise ValueError(f"{len(hypotheses)} hypotheses with {len(references)} references")
    correct = [0] * MAX_ORDER
    total = [0] * MAX_ORDER
    system_length = reference_length = 0
    for hypothesis, reference in zip(hypotheses, references, strict=True):
        hypothesis_tokens, reference_tokens = _tokens(hypothesis), _tokens(reference)
        system_length += len(hypothesis_tokens)
        reference_length += len(reference_tokens)
        for order in range(1, MAX_ORDER + 1):
            available = _ngrams(reference_tokens, order)
            for ngram, count in _ngrams(hypothesis_tokens, order).items():
                total[order - 1] += count
                correct[order - 1] += min(count, available[ngram])

    precisions = tuple(c / t if t else 0.0 for c, t in zip(correct, total, strict=True))
    brevity_penalty = 1.0
    if system_length == 0 or reference_length == 0:
        brevity_penalty = 0.0
    elif system_length < reference_length:
        brevity_penalty = math.exp(1 - reference_length / system_length)
    score = 0.0
    if all(precisions):
        score = 100 * brevity_penalty * math.prod(precisions) ** (1 / MAX_ORDER)
    return BLEU(score, precisions, brevity_penalty, system_length, reference_length)


def _tokens(line: str) -> list[str]:
    return [token for token in re.split(r"[ \t\n\r\f\v]+", line) if token]


def _ngrams(tokens: Sequence[str], order: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(tokens[i : i + order]) for i in range(len(tokens) - order + 1))
