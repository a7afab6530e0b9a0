"""Attentions that read a window of the source, for one sentence and one step.

Matrices have the layout of Keras kernels, [inputs, outputs]. Positions count from 0; positions from
`length` on are padding.
"""

import math

import numpy as np

from tests.reference.activations import Array, sigmoid, softmax
from tests.reference.attention import concat_energy


def local_centre(step: int, length: int) -> float:
    """Centre of local-m: Luong et al. (2015), section 3.2: p_t = t, clamped to the source."""
    return float(min(step, length - 1))


def predicted_centre(query: Array, W_p: Array, v_p: Array, length: int) -> float:
    """Centre of local-p: Shu and Nakayama (2017), equation 10: p_t = S sigmoid(v_p tanh(W_p h)).

    Args:
        query: float [query_units].
        W_p: float [query_units, units].
        v_p: float [units].
        length: int. S.
    """
    centre = length * float(sigmoid(np.sum(v_p * np.tanh(query @ W_p))))
    return min(centre, length - 1.0)


def local_scores(
    query: Array,
    encoder_outputs: Array,
    W_h: Array,
    W_s: Array,
    v: Array,
    length: int,
    centre: float,
    half_window: int,
    sigma: float | None,
) -> Array:
    """Scores of local attention with the concat score.

    Source: Luong et al. (2015), section 3.2; Shu and Nakayama (2017), equation 11, with the softmax
    over the window.

    Args:
        query, encoder_outputs, W_h, W_s, v, length: as in `luong_concat_scores`.
        centre: float. p_t.
        half_window: int. D.
        sigma: float, or None for no Gaussian (local-m).

    Returns:
        float [source_length]. 0 outside the window.
    """
    window = [s for s in range(length) if abs(s - centre) <= half_window]
    energies = [concat_energy(query, encoder_outputs[s], W_h, W_s, v) for s in window]
    scores = np.zeros(encoder_outputs.shape[0])
    for s, weight in zip(window, softmax(np.array(energies)), strict=True):
        scores[s] = weight
        if sigma is not None:
            scores[s] = weight * math.exp(-((s - centre) ** 2) / (2 * sigma**2))
    return scores


def flexible_strength(query: Array, embedding: Array, W_g: Array, v_g: Array, b_g: float) -> float:
    """Strength of Shu and Nakayama (2017), equation 8: g = sigmoid(v_g tanh(W_g [h; i]) + b_g).

    Args:
        query: float [query_units]. h.
        embedding: float [embedding_dim]. i, the embedding of the token fed back.
        W_g: float [query_units + embedding_dim, units].
        v_g: float [units].
        b_g: float.
    """
    hidden = np.tanh(np.concatenate([query, embedding]) @ W_g)
    return float(sigmoid(np.sum(v_g * hidden) + b_g))


def flexible_scores(
    query: Array,
    encoder_outputs: Array,
    W_h: Array,
    W_s: Array,
    v: Array,
    length: int,
    focus: float,
    strength: float,
    sigma: float,
    threshold: float,
) -> tuple[Array, float, int]:
    """One step of Flexible Attention.

    Source: Shu and Nakayama (2017), equations 3 to 7 and section 3.1.

    Args:
        query, encoder_outputs, W_h, W_s, v, length: as in `luong_concat_scores`.
        focus: float. p of the previous step.
        strength: float. g.
        sigma: float.
        threshold: float, tau; infinity scores every position.

    Returns:
        scores: float [source_length]. 0 outside the window.
        focus: float. p of this step.
        positions: int. Number of positions scored.
    """
    nearest = min(round(focus), length - 1)
    window, energies = [], []
    for s in range(length):
        distance = (s - focus) ** 2 / (2 * sigma**2)
        penalty = strength * distance
        if penalty < threshold or s == nearest:
            window.append(s)
            energies.append(concat_energy(query, encoder_outputs[s], W_h, W_s, v) - penalty)
    scores = np.zeros(encoder_outputs.shape[0])
    focus = 0.0
    for s, weight in zip(window, softmax(np.array(energies)), strict=True):
        scores[s] = weight
        focus = focus + weight * s
    return scores, focus, len(window)
