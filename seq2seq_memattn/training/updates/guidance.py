"""Guidance by a teacher: a trained model shows a student what to read in the source at each step.

The K-memory paper names this as future work: the memory would learn to approximate what a trained
attention reads from the source (Britz, Guan and Luong, 2017, section 6). Teacher and student read
the same targets, so they can be compared step by step.
"""

import contextlib
import hashlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import keras
from keras import ops

from seq2seq_memattn.compute.precision import at_least_float32
from seq2seq_memattn.layers.teacher_forcing import Asked
from seq2seq_memattn.model import Seq2Seq

# Lower bound for arguments of logarithms and for divisors, so that neither is 0. It is so small
# that every probability that matters keeps its gradient, but its square is above 0 in float32: on
# JAX, the gradient of x / y divides by the square of y.
LEAST = 1e-18


class Reading(NamedTuple):
    """What a model read at each step of a target.

    Fields:
        contexts: float [batch, target_length, memory_units]; None if not compared.
        alignments: float [batch, target_length, source_length]; None if not compared.
    """

    contexts: Any
    alignments: Any


class Teacher:
    """A trained model whose readings guide a student. Its weights never change.

    Args:
        model: `Seq2Seq`.
        asked: `Asked`. Which readings are compared.
        update: int. The update of the teacher's own training at which its weights were saved.
        problems: messages about its weights.
    """

    def __init__(
        self, model: Seq2Seq, asked: Asked, update: int = 0, problems: Sequence[str] = ()
    ) -> None:
        self._model = model
        self._asked = asked
        self._update = update
        self.problems = problems

    @property
    def identity(self) -> dict[str, Any]:
        """The update and a checksum, which identify these weights, as JSON values."""
        digest = hashlib.sha256()
        for weight in self._model.weights:
            digest.update(ops.convert_to_numpy(weight).tobytes())
        return {"update": self._update, "sha256": digest.hexdigest()}

    @property
    def values(self) -> list[Any]:
        """The model's weights, to pass to a function that JAX compiles."""
        return [variable.value for variable in self._model.variables]

    def __call__(self, batch: dict[str, Any], values: Any = None) -> Reading:
        """What the teacher reads for the targets of a batch, without dropout and gradients.

        Args:
            batch: with `source` and `target_inputs`.
            values: on JAX, the attribute `values`, passed through the compiled function as an
                argument. Otherwise None.
        """
        scope: Any = contextlib.nullcontext()
        if values is not None:
            mapping = list(zip(self._model.variables, values, strict=True))
            scope = keras.StatelessScope(state_mapping=mapping)
        with scope:
            _, decoded = self._model(batch, training=False, asked=self._asked)
        reading = Reading(decoded.contexts, decoded.alignments)
        return keras.tree.map_structure(_fixed, reading)


def _fixed(array: Any) -> Any:
    return None if array is None else ops.stop_gradient(array)


def context_distances(teacher: Any, student: Any) -> Any:
    """Mean squared difference of two contexts: float [batch, target_length].

    The contexts are compared as they are. A student that starts with its teacher's encoder
    (`--init_from`) has contexts in the same space; any other student must learn that space.

    Args:
        teacher, student: float [batch, target_length, memory_units].
    """
    difference = at_least_float32(teacher) - at_least_float32(student)
    return ops.mean(ops.square(difference), axis=-1)


def alignment_divergences(teacher: Any, student: Any) -> Any:
    """Kullback-Leibler divergence KL(teacher || student) of two alignments, in nats.

    Both alignments are first divided by their sums over the source. The alignment of K-memory, beta
    times alpha, does not sum to 1 if its scores are sigmoids.

    Args:
        teacher, student: float [batch, target_length, source_length]; 0 on padding.

    Returns:
        float [batch, target_length], float32 at least.
    """
    teacher, student = (_distribution(at_least_float32(x)) for x in (teacher, student))
    ratio = ops.log(ops.maximum(teacher, LEAST)) - ops.log(ops.maximum(student, LEAST))
    return ops.sum(teacher * ratio, axis=-1)


def _distribution(alignments: Any) -> Any:
    return alignments / ops.maximum(ops.sum(alignments, axis=-1, keepdims=True), LEAST)
