"""Attention for one sentence and one query, equation by equation.

Matrices have the layout of Keras kernels, [inputs, outputs], which is the transpose of the papers'
W. Positions from `length` on are padding: they are never read, and their score is exactly 0.
"""

import numpy as np

from tests.reference.activations import Array, sigmoid, softmax


def bahdanau_scores(
    query: Array,
    encoder_outputs: Array,
    W_k: Array,
    b_k: Array | None,
    W_q: Array,
    b_q: Array | None,
    v: Array,
    length: int,
) -> Array:
    """Additive attention as google/seq2seq writes it.

    Source: Bahdanau et al. (2014), appendix A.1.2; Britz, Guan and Luong (2017), equation 2. The
    reference code projects keys and queries, each with a bias, and adds no bias to the energy:
    e_s = sum(v * tanh(W_k s + b_k + W_q h + b_q)).

    Args:
        query: float [query_units]. The decoder state h.
        encoder_outputs: float [source_length, encoder_units].
        W_k: float [encoder_units, units].
        b_k: float [units], or None for no bias.
        W_q: float [query_units, units].
        b_q: float [units], or None for no bias.
        v: float [units].
        length: int. Real positions, end token included.

    Returns:
        alpha: float [source_length]. Sums to 1 over the real positions, 0 on padding.
    """
    energies = np.zeros(length)
    for s in range(length):
        hidden = encoder_outputs[s] @ W_k + query @ W_q
        if b_k is not None:
            hidden = hidden + b_k
        if b_q is not None:
            hidden = hidden + b_q
        energies[s] = np.sum(v * np.tanh(hidden))
    return _softmax_over_real_positions(energies, encoder_outputs.shape[0])


def luong_dot_scores(query: Array, encoder_outputs: Array, length: int) -> Array:
    """Dot score of Luong et al. (2015), equation 8: e_s = h^T s.

    Args:
        query: float [units]. The decoder state h.
        encoder_outputs: float [source_length, units].
        length: int. Real positions, end token included.

    Returns:
        alpha: float [source_length]. Sums to 1 over the real positions, 0 on padding.
    """
    energies = np.zeros(length)
    for s in range(length):
        energies[s] = np.sum(query * encoder_outputs[s])
    return _softmax_over_real_positions(energies, encoder_outputs.shape[0])


def luong_general_scores(query: Array, encoder_outputs: Array, W_a: Array, length: int) -> Array:
    """General score of Luong et al. (2015), equation 8: e_s = h^T W_a s.

    Args:
        query: float [query_units]. The decoder state h.
        encoder_outputs: float [source_length, encoder_units].
        W_a: float [encoder_units, query_units]. The paper's W_a, transposed: it maps an encoder
            output to the width of the query.
        length: int. Real positions, end token included.

    Returns:
        alpha: float [source_length]. Sums to 1 over the real positions, 0 on padding.
    """
    energies = np.zeros(length)
    for s in range(length):
        energies[s] = np.sum(query * (encoder_outputs[s] @ W_a))
    return _softmax_over_real_positions(energies, encoder_outputs.shape[0])


def luong_concat_scores(
    query: Array, encoder_outputs: Array, W_h: Array, W_s: Array, v: Array, length: int
) -> Array:
    """Concat score of Luong et al. (2015), equation 8: e_s = v^T tanh(W_a [h; s]).

    Args:
        query: float [query_units]. The decoder state h.
        encoder_outputs: float [source_length, encoder_units].
        W_h: float [query_units, units]. The part of W_a that multiplies h.
        W_s: float [encoder_units, units]. The part of W_a that multiplies s.
        v: float [units].
        length: int. Real positions, end token included.

    Returns:
        alpha: float [source_length]. Sums to 1 over the real positions, 0 on padding.
    """
    energies = [concat_energy(query, encoder_outputs[s], W_h, W_s, v) for s in range(length)]
    return _softmax_over_real_positions(np.array(energies), encoder_outputs.shape[0])


def concat_energy(query: Array, output: Array, W_h: Array, W_s: Array, v: Array) -> float:
    """The energy of one position: Shu and Nakayama (2017), equation 3."""
    W_a = np.concatenate([W_h, W_s])
    return float(np.sum(v * np.tanh(np.concatenate([query, output]) @ W_a)))


def luong_location_scores(query: Array, encoder_outputs: Array, W_a: Array, length: int) -> Array:
    """Location score of Luong et al. (2015), equation 7: alpha = softmax(W_a h), cut at the source.

    Args:
        query: float [query_units]. The decoder state h.
        encoder_outputs: float [source_length, encoder_units]. Only its length is used.
        W_a: float [query_units, max_source_length].
        length: int. Real positions, end token included.

    Returns:
        alpha: float [source_length]. Sums to 1 over the real positions, 0 on padding.
    """
    energies = np.array([np.sum(query * W_a[:, s]) for s in range(length)])
    return _softmax_over_real_positions(energies, encoder_outputs.shape[0])


def linear_memory(encoder_outputs: Array, W_k: Array, length: int) -> Array:
    """Covariance C of de Brebisson and Vincent (2016): C = sum_s k_s k_s^T, k_s = W_k h_s.

    Args:
        encoder_outputs: float [source_length, encoder_units].
        W_k: float [encoder_units, units].
        length: int. Real positions, end token included.

    Returns:
        float [units, units].
    """
    memory = np.zeros([W_k.shape[1], W_k.shape[1]])
    for s in range(length):
        key = encoder_outputs[s] @ W_k
        memory = memory + np.outer(key, key)
    return memory


def k_memory_alpha(
    encoder_outputs: Array,
    length: int,
    W_alpha: Array,
    score: str = "softmax",
    normalise_over: str = "slots",
    position_encoding: str | None = None,
    max_source_length: int | None = None,
    b_alpha: Array | None = None,
) -> Array:
    """Encoder scores of K-memory attention.

    Source: Britz, Guan and Luong (2017), equations 5, 8, 9 and 10. The energies, including the
    bias, are multiplied by the encodings before the softmax or sigmoid.

    Args:
        encoder_outputs: float [source_length, encoder_units].
        length: int. Real positions, end token included.
        W_alpha: float [encoder_units, num_slots].
        score: "softmax" or "sigmoid".
        normalise_over: axis of a softmax: "slots" (the K slots at each position) or "time" (the
            real positions, for each slot). A sigmoid has no axis.
        position_encoding: None, "masked", "sum_to_one" or "mean_one"; see `position_encodings`.
        max_source_length: int, S of equation 10; needed with a position encoding.
        b_alpha: float [num_slots], or None for no bias (the paper has none).

    Returns:
        alpha: float [source_length, num_slots]. Exactly 0 on padding.
    """
    num_slots = W_alpha.shape[1]
    encodings = position_encodings(num_slots, max_source_length, length, position_encoding)
    energies = np.zeros([length, num_slots])
    for s in range(length):
        for k in range(num_slots):
            energy = np.sum(encoder_outputs[s] * W_alpha[:, k])
            if b_alpha is not None:
                energy = energy + b_alpha[k]
            energies[s, k] = energy * encodings[k, s]

    alpha = np.zeros([encoder_outputs.shape[0], num_slots])
    if score == "sigmoid":
        for s in range(length):
            alpha[s] = sigmoid(energies[s])
    elif score == "softmax" and normalise_over == "slots":
        for s in range(length):
            alpha[s] = softmax(energies[s])
    elif score == "softmax" and normalise_over == "time":
        for k in range(num_slots):
            alpha[:length, k] = softmax(energies[:, k])
    else:
        raise ValueError(f"unknown score {score!r} or normalise_over {normalise_over!r}")
    return alpha


def position_encodings(
    num_slots: int, max_source_length: int | None, length: int, mode: str | None
) -> Array:
    """Position encodings l of one sentence.

    Source: Britz, Guan and Luong (2017), section 3.2, equation 10:
    L_ks = (1 - k/K)(1 - s/S) + (k/K)(s/S), with k from 1 to K and s from 0 to length - 1.

    The last slot has L_K0 = 0. In a sentence of one token, its values therefore sum to 0 and cannot
    be renormalised, so they stay 0 in every mode.

    Args:
        num_slots: int. K.
        max_source_length: int. S, the corpus-wide maximum source length. Unused if `mode` is None.
        length: int. Real positions of this sentence, at most `max_source_length`.
        mode: None (no encoding: all ones), "masked" (the values of L on the real positions),
            "sum_to_one" (each slot's values divided by their sum over the real positions) or
            "mean_one" (divided by their mean over the real positions).

    Returns:
        float [num_slots, length]. l_ks; row k - 1 is slot k.
    """
    encodings = np.ones([num_slots, length])
    if mode is None:
        return encodings
    if mode not in ("masked", "sum_to_one", "mean_one"):
        raise ValueError(f"unknown position encoding {mode!r}")
    if max_source_length is None or length > max_source_length:
        raise ValueError(f"max_source_length {max_source_length} with a sentence of {length}")
    for k in range(1, num_slots + 1):
        for s in range(length):
            slot, position = k / num_slots, s / max_source_length
            encodings[k - 1, s] = (1 - slot) * (1 - position) + slot * position
        total = np.sum(encodings[k - 1])
        if mode == "masked" or total == 0:
            continue
        encodings[k - 1] = encodings[k - 1] / total
        if mode == "mean_one":
            encodings[k - 1] = encodings[k - 1] * length
    return encodings


def k_memory_rows(encoder_outputs: Array, alpha: Array) -> Array:
    """Memory C of Britz, Guan and Luong (2017), equation 4: C_k = sum_s alpha_sk h_s.

    Args:
        encoder_outputs: float [source_length, encoder_units].
        alpha: float [source_length, num_slots]. 0 on padding.

    Returns:
        float [num_slots, encoder_units].
    """
    rows = np.zeros([alpha.shape[1], encoder_outputs.shape[1]])
    for k in range(alpha.shape[1]):
        for s in range(encoder_outputs.shape[0]):
            rows[k] = rows[k] + alpha[s, k] * encoder_outputs[s]
    return rows


def k_memory_beta(
    query: Array, W_beta: Array, score: str = "softmax", b_beta: Array | None = None
) -> Array:
    """Decoder scores of Britz, Guan and Luong (2017), equation 7: beta = softmax(W_beta h).

    Args:
        query: float [query_units]. The decoder state h.
        W_beta: float [query_units, num_slots].
        score: "softmax" (over the slots) or "sigmoid".
        b_beta: float [num_slots], or None for no bias (the paper has none).

    Returns:
        beta: float [num_slots].
    """
    energies = query @ W_beta
    if b_beta is not None:
        energies = energies + b_beta
    if score == "softmax":
        return softmax(energies)
    if score == "sigmoid":
        return sigmoid(energies)
    raise ValueError(f"unknown score {score!r}")


def context(scores: Array, rows: Array) -> Array:
    """Weighted sum of rows: Britz, Guan and Luong (2017), equation 6 (over the source: equation 1).

    Args:
        scores: float [rows].
        rows: float [rows, units].

    Returns:
        float [units].
    """
    total = np.zeros(rows.shape[1])
    for row in range(rows.shape[0]):
        total = total + scores[row] * rows[row]
    return total


def k_memory_alignment(beta: Array, alpha: Array) -> Array:
    """Alignment of Britz, Guan and Luong (2017), section 5: a_s = sum_k beta_k alpha_sk.

    Args:
        beta: float [num_slots].
        alpha: float [source_length, num_slots].

    Returns:
        float [source_length].
    """
    alignment = np.zeros(alpha.shape[0])
    for s in range(alpha.shape[0]):
        for k in range(alpha.shape[1]):
            alignment[s] = alignment[s] + beta[k] * alpha[s, k]
    return alignment


def _softmax_over_real_positions(energies: Array, source_length: int) -> Array:
    scores = np.zeros(source_length)
    scores[: energies.shape[0]] = softmax(energies)
    return scores
