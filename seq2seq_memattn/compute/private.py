"""Every private name of Keras and TensorFlow that this package uses; none has a public equivalent.

If an upgrade removes one of them, this file's tests fail. `tensorflow.core.protobuf` does not count
as private: it is the only path to the classes of TensorFlow's public file formats.
"""

import contextlib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import keras
from keras.src.backend import get_keras_mask, set_keras_mask
from keras.src.backend.common.global_state import get_global_attribute, set_global_attribute

# Embedding layers whose ids number the rows of a table; subclasses may map ids in other ways.
EMBEDDINGS = (keras.layers.Embedding, keras.layers.ReversibleEmbedding)


def attached_mask(x: Any) -> Any:
    """The mask that Keras attached to a tensor, or None.

    JAX's arrays have no attributes, so Keras keeps their masks elsewhere.
    """
    return get_keras_mask(x)


def attach_mask(x: Any, mask: Any) -> None:
    """Attaches a mask to a tensor, as Keras does for its layers' outputs."""
    set_keras_mask(x, mask)


def prefer_high(metric: keras.metrics.Metric) -> None:
    """Tells callbacks, such as `EarlyStopping`, that larger values of a metric are better."""
    metric._direction = "up"


def unwrapped(error: ValueError) -> ValueError:
    """`error`, marked so that Keras does not add a list of all arguments to its message."""
    error._keras_call_info_injected = True  # type: ignore[attr-defined]
    return error


def layers_inside(layer: Any, deep: bool = True) -> list[Any]:
    """The layers inside a layer, at any depth or, with `deep=False`, its own ones."""
    return list(layer._flatten_layers(recursive=deep, include_self=False))


def freeze_inside(layer: Any) -> None:
    """Freezes the layers inside a layer that was made with `trainable=False`.

    Keras freezes them only when the property is set later.
    """
    if not layer.trainable:
        for inner in layers_inside(layer):  # the property of `layer` ignores the value it has
            inner.trainable = False


def embeddings_of_input(model: Any, number: int = 0) -> list[keras.layers.Embedding]:
    """The `Embedding` layers that read input `number` of a functional or sequential model."""
    if type(model) in EMBEDDINGS:
        return [model]
    if isinstance(model, keras.Sequential):
        return embeddings_of_input(model.layers[0])
    nodes = itertools.chain(*getattr(model, "_nodes_by_depth", {}).values())
    return [
        found
        for node in nodes
        for position, given in enumerate(node.input_tensors)
        if given is model.inputs[number]
        for found in embeddings_of_input(node.operation, position)
    ]


class Call(NamedTuple):
    """A call of a layer in a functional model.

    Fields:
        layer: the layer.
        args, kwargs: its arguments, with symbolic tensors.
        outputs: its outputs.
    """

    layer: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    outputs: list[Any]


def calls_in(model: Any, kind: type) -> list[Call]:
    """All calls of layers of class `kind` in a functional model; [] for any other model."""
    nodes = itertools.chain(*getattr(model, "_nodes_by_depth", {}).values())
    return [
        Call(node.operation, node.arguments.args, node.arguments.kwargs, node.outputs)
        for node in nodes
        if isinstance(node.operation, kind)
    ]


def maker(tensor: Any) -> Call:
    """The call that made a symbolic tensor, without `training` and masks that Keras passes on."""
    operation, index, _ = tensor._keras_history
    node = operation._inbound_nodes[index]
    kwargs = {
        name: x
        for name, x in node.arguments.kwargs.items()
        if name != "training" and not ("mask" in name and _has_symbols(x))
    }
    return Call(operation, node.arguments.args, kwargs, node.outputs)


def _has_symbols(x: Any) -> bool:
    return any(map(keras.backend.is_keras_tensor, keras.tree.flatten(x)))


def serialise_shared(layer: Any) -> dict[str, Any]:
    """The configuration of an inner layer, marked so that several outer layers can share it.

    Keras marks shared layers itself, but not inside configurations that are already plain dicts.
    """
    config: dict[str, Any] = keras.saving.serialize_keras_object(layer)
    is_saving = get_global_attribute("shared_objects/id_to_config_map") is not None
    if is_saving:
        config["shared_object_id"] = id(layer)
    return config


@contextlib.contextmanager
def forgetting_variables_on_error() -> Iterator[None]:
    """If the block raises, makes Keras forget the variables that the block left uninitialised.

    Keras initialises variables of a traced call when the call ends. If an initialiser raises, Keras
    keeps the list of these variables, and the next traced call fails.
    """
    before = list(get_global_attribute("uninitialized_variables", []))
    try:
        yield
    except BaseException:
        set_global_attribute("uninitialized_variables", before)
        raise


def is_traced_for_xla() -> bool:
    """Whether an enclosing `tf.function` has `jit_compile=True`: XLA needs fixed shapes."""
    import tensorflow as tf

    graph = None if tf.executing_eagerly() else tf.compat.v1.get_default_graph()
    while graph is not None:
        context = graph._get_control_flow_context()
        while context is not None:
            if context.IsXLAContext():
                return True
            context = context.outer_context
        graph = getattr(graph, "outer_graph", None)
    return False


def leave_gradients_as_they_are(optimizer: Any) -> None:
    """Keeps a Keras optimiser from summing gradients over replicas a second time."""
    optimizer._all_reduce_sum_gradients = lambda gradients_and_variables: gradients_and_variables


def num_workers(strategy: Any) -> int:
    """The number of workers of a `ParameterServerStrategy`."""
    number: int = strategy.extended._num_workers
    return number


def wait_for_peers(
    addresses: Mapping[str, Sequence[str]], start_seconds: float, lost_seconds: float
) -> None:
    """Sets how long the processes of a TensorFlow cluster wait for each other.

    Args:
        addresses: addresses of the processes, by job.
        start_seconds: float. Time for all processes to connect.
        lost_seconds: float. Silence after which a process counts as lost.
    """
    from tensorflow.python.distribute import collective_all_reduce_strategy, multi_worker_util
    from tensorflow.python.eager import context

    jobs = [
        collective_all_reduce_strategy.coordination_config_pb2.CoordinatedJob(
            name=job, num_tasks=len(processes)
        )
        for job, processes in addresses.items()
    ]
    context.context().configure_coordination_service(
        service_type="standalone",
        service_leader=multi_worker_util.coordination_leader(addresses),
        coordinated_jobs=jobs,
        cluster_register_timeout_in_ms=round(1000 * start_seconds),
        heartbeat_timeout_in_ms=round(1000 * lost_seconds),
    )
