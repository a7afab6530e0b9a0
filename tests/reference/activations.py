"""The two functions that turn energies into scores, on plain NumPy arrays."""

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


def softmax(energies: Array) -> Array:
    """Softmax of a vector, exp(e_i) / sum_j exp(e_j); an empty vector gives an empty vector."""
    if energies.size == 0:
        return np.zeros(0)
    exponentials: Array = np.exp(energies - np.max(energies))
    return np.asarray(exponentials / np.sum(exponentials))


def sigmoid(energies: Array) -> Array:
    """Sigmoid, 1 / (1 + exp(-e)), of each element, written so that no exponential overflows."""
    return np.exp(-np.logaddexp(0.0, -energies))
