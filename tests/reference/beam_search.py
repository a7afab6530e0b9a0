"""Beam search for one sentence over any function from a prefix to log-probabilities.

The rules are those of google/seq2seq (`inference/beam_search.py`). Successors are the best of
beam x vocabulary by log_prob / penalty(length). The length excludes the end token. A finished
hypothesis keeps its score and stays among the candidates. Only the rule for stopping differs; see
`can_stop`. `Rules` adds what other toolkits offer: constraints, a reward for length, coverage.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from tests.reference.activations import Array

# Prefix, which begins with the start token and never holds the end token -> [vocab_size] log-probs.
LogProbsFn = Callable[[tuple[int, ...]], Array]


class Hypothesis(NamedTuple):
    """One partial or complete output."""

    tokens: tuple[int, ...]  # without start and end token
    log_prob: float  # in nats; includes the end token if finished
    score: float  # log_prob / length_penalty(len(tokens), factor)
    is_finished: bool  # ended with the end token

    @property
    def length(self) -> int:
        """Tokens, without the end token."""
        return len(self.tokens)


class Rules(NamedTuple):
    """Constraints on the tokens of one sentence, and what is added to the scores."""

    prefix: tuple[int, ...] = ()  # the first tokens
    banned: tuple[int, ...] = ()  # tokens that are never written
    least: int = 0  # tokens before the end token
    ngram: int = 0  # so many tokens in a row never occur twice; 0: no rule
    reward: float = 0.0  # for each token
    coverage: float = 0.0  # weight of the coverage penalty
    # Prefix with the start token -> [source_length], the alignment of the step after it.
    alignment_fn: Callable[[tuple[int, ...]], Array] | None = None

    def allow(self, tokens: tuple[int, ...], token: int, end_id: int) -> bool:
        """Whether `token` may follow `tokens`."""
        if len(tokens) < len(self.prefix):
            return token == self.prefix[len(tokens)]
        if token == end_id:
            return len(tokens) >= self.least
        longer = (*tokens, token)
        grams = [longer[i : i + self.ngram] for i in range(len(longer) - self.ngram + 1)]
        repeats = bool(self.ngram and grams) and grams.count(grams[-1]) > 1
        return token not in self.banned and not repeats

    def bonus(self, tokens: tuple[int, ...], is_finished: bool, start_id: int) -> float:
        """What the score adds to the log-probability after the penalty."""
        found = self.reward * len(tokens)
        if self.coverage:
            steps = len(tokens) + is_finished
            read = sum(self.alignment_fn((start_id, *tokens[:n])) for n in range(steps))
            found += self.coverage * float(np.log(np.clip(read, 1e-6, 1.0)).sum())
        return found


FREE = Rules()


class SearchResult(NamedTuple):
    """What a search returns."""

    hypotheses: list[Hypothesis]  # best first
    num_steps: int  # steps taken, at most max_length


def length_penalty(length: int, factor: float) -> float:
    """Length penalty of Wu et al. (2016), equation 14: ((5 + length) / 6) ** factor."""
    return float(((5.0 + length) / 6.0) ** factor)


def beam_search(
    log_probs_fn: LogProbsFn,
    start_id: int,
    end_id: int,
    beam_size: int,
    max_length: int,
    length_penalty_factor: float = 0.0,
    n_best: int = 1,
    early_stopping: bool = True,
    rules: Rules = FREE,
) -> SearchResult:
    """Beam search for one sentence.

    A step adds one token, which may be the end token. After `max_length` steps, an unfinished
    hypothesis is returned with `max_length` tokens. Among equal scores, the lower index
    beam * vocab_size + token wins. Candidates of probability 0 are never taken, so the beam may
    hold fewer than `beam_size` hypotheses.

    Args:
        log_probs_fn: The model.
        start_id: int. First token of every prefix.
        end_id: int. The token that finishes a hypothesis.
        beam_size: int. Hypotheses kept, live and finished together.
        max_length: int. Steps at most.
        length_penalty_factor: float. 0 for the plain log-probability.
        n_best: int, at most `beam_size`. Hypotheses returned.
        early_stopping: bool. Stops as soon as `can_stop` allows; the result is the same.
        rules: Constraints, and what is added to the scores.

    Returns:
        SearchResult with up to `n_best` hypotheses by falling score.
    """
    beam = [Hypothesis((), 0.0, 0.0, False)]
    num_steps = 0
    while num_steps < max_length:
        candidates = []
        for beam_index, hypothesis in enumerate(beam):
            candidates += _successors(
                hypothesis, beam_index, log_probs_fn, start_id, end_id, length_penalty_factor, rules
            )
        candidates.sort(key=lambda candidate: (-candidate[1].score, candidate[0]))
        beam = [hypothesis for _, hypothesis in candidates[:beam_size]]
        num_steps += 1
        if early_stopping and can_stop(beam, n_best, max_length, length_penalty_factor, rules):
            break
    return SearchResult(beam[:n_best], num_steps)


def can_stop(
    beam: Sequence[Hypothesis],
    n_best: int,
    max_length: int,
    length_penalty_factor: float,
    rules: Rules = FREE,
) -> bool:
    """Whether no later step can change the n_best results.

    This holds if no hypothesis is live, or if `n_best` finished hypotheses score above every score
    that a live one can still reach. That bound is its current log-probability, which can only fall,
    at the most favourable length up to `max_length`, with the most favourable reward and without a
    coverage penalty.
    """
    live = [hypothesis for hypothesis in beam if not hypothesis.is_finished]
    if not live:
        return True
    finished_scores = sorted((h.score for h in beam if h.is_finished), reverse=True)
    if len(finished_scores) < n_best:
        return False
    reachable = max(
        max(
            hypothesis.log_prob / length_penalty(length, length_penalty_factor)
            for length in range(hypothesis.length, max_length + 1)
        )
        + rules.reward * (max_length if rules.reward > 0 else hypothesis.length)
        for hypothesis in live
    )
    return finished_scores[n_best - 1] > reachable


def greedy_search(
    log_probs_fn: LogProbsFn, start_id: int, end_id: int, max_length: int
) -> Hypothesis:
    """Takes the likeliest token at each step, the lowest of equals; the score is the log_prob."""
    tokens: tuple[int, ...] = ()
    log_prob = 0.0
    for _ in range(max_length):
        log_probs = log_probs_fn((start_id, *tokens))
        token = int(np.argmax(log_probs))
        log_prob += float(log_probs[token])
        if token == end_id:
            return Hypothesis(tokens, log_prob, log_prob, True)
        tokens = (*tokens, token)
    return Hypothesis(tokens, log_prob, log_prob, False)


def exhaustive_search(
    log_probs_fn: LogProbsFn,
    start_id: int,
    end_id: int,
    max_length: int,
    length_penalty_factor: float = 0.0,
    rules: Rules = FREE,
) -> list[Hypothesis]:
    """All outputs: those that end within `max_length` steps, and those that are cut there.

    Args:
        log_probs_fn: The model.
        start_id: int. First token of every prefix.
        end_id: int. The token that finishes a hypothesis.
        max_length: int. Number of steps; a cut output has as many tokens.
        length_penalty_factor: float. 0 for the plain log-probability.
        rules: Constraints, and what is added to the scores.

    Returns:
        All outputs of positive probability, sorted by falling score, then by tokens.
    """
    live = [Hypothesis((), 0.0, 0.0, False)]
    finished: list[Hypothesis] = []
    for _ in range(max_length):
        longer: list[Hypothesis] = []
        for hypothesis in live:
            for _, successor in _successors(
                hypothesis, 0, log_probs_fn, start_id, end_id, length_penalty_factor, rules
            ):
                (finished if successor.is_finished else longer).append(successor)
        live = longer
    return sorted(finished + live, key=lambda hypothesis: (-hypothesis.score, hypothesis.tokens))


def _successors(
    hypothesis: Hypothesis,
    beam_index: int,
    log_probs_fn: LogProbsFn,
    start_id: int,
    end_id: int,
    length_penalty_factor: float,
    rules: Rules,
) -> list[tuple[int, Hypothesis]]:
    """The successors of a hypothesis by each next token, by index beam * vocab_size + token."""
    log_probs = log_probs_fn((start_id, *hypothesis.tokens))
    vocab_size = log_probs.shape[0]
    if hypothesis.is_finished:
        return [(beam_index * vocab_size + end_id, hypothesis)]
    successors = []
    for token in range(vocab_size):
        if log_probs[token] == -np.inf or not rules.allow(hypothesis.tokens, token, end_id):
            continue
        is_finished = token == end_id
        tokens = hypothesis.tokens if is_finished else (*hypothesis.tokens, token)
        log_prob = hypothesis.log_prob + float(log_probs[token])
        score = log_prob / length_penalty(len(tokens), length_penalty_factor)
        score += rules.bonus(tokens, is_finished, start_id)
        successor = Hypothesis(tokens, log_prob, score, is_finished)
        successors.append((beam_index * vocab_size + token, successor))
    return successors
