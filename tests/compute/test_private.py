"""Each private name of Keras and TensorFlow that we use still behaves as we need."""

from typing import Any
from unittest import mock

import keras
import numpy as np
import tensorflow as tf
from tensorflow.python.distribute import parameter_server_strategy_v2
from tensorflow.python.eager import context

from seq2seq_memattn.compute.private import (
    attach_mask,
    attached_mask,
    embeddings_of_input,
    is_traced_for_xla,
    layers_inside,
    leave_gradients_as_they_are,
    num_workers,
    serialise_shared,
    unwrapped,
    wait_for_peers,
)
from tests.errors import refused


def test_a_mask_that_keras_attached_is_found() -> None:
    embedded = keras.layers.Embedding(5, 2, mask_zero=True)(np.array([[3, 0]]))
    np.testing.assert_array_equal(attached_mask(embedded), [[True, False]])
    assert attached_mask(keras.ops.zeros([1, 2])) is None


def test_a_mask_that_is_attached_is_passed_on_by_keras() -> None:
    array = keras.ops.ones([1, 2, 3])
    attach_mask(array, np.array([[True, False]]))
    np.testing.assert_array_equal(attached_mask(keras.layers.Dense(4)(array)), [[True, False]])


def test_keras_adds_nothing_to_an_error_that_is_marked() -> None:
    def fail(x: Any) -> Any:
        raise unwrapped(ValueError("`x`: wrong."))

    assert refused(keras.layers.Lambda(fail), keras.ops.ones([1])) == "`x`: wrong."


def test_layers_inside_of_a_layer_are_found_at_any_depth() -> None:
    cells = [keras.layers.LSTMCell(2), keras.layers.GRUCell(2)]
    rnn = keras.layers.RNN(cells)
    found = layers_inside(rnn)
    assert {*cells, rnn.cell} <= set(found)
    assert rnn not in found


def test_a_layer_is_marked_as_shared_while_a_model_is_saved() -> None:
    layer = keras.layers.Dense(3)
    assert "shared_object_id" not in serialise_shared(layer)
    with keras.src.saving.serialization_lib.ObjectSharingScope():
        configs = [serialise_shared(layer) for _ in range(2)]
        first, second = (keras.saving.deserialize_keras_object(config) for config in configs)
    assert first is second


def test_xla_is_noticed_inside_of_loops_branches_and_functions() -> None:
    found: list[bool] = []

    def look(x: Any) -> Any:
        found.append(is_traced_for_xla())
        return x + 1

    def nested(x: Any) -> Any:
        x = look(x)
        x = tf.while_loop(lambda x: x < 9, lambda x: [look(x)], [x])[0]
        x = tf.cond(x > 3, lambda: look(x), lambda: x)
        return tf.function(look)(x)

    for jit_compile in (False, True):
        found.clear()
        tf.function(nested, autograph=False, jit_compile=jit_compile)(tf.constant(1))
        assert len(found) >= 4
        assert set(found) == {jit_compile}
    assert not is_traced_for_xla()


def test_an_optimiser_takes_gradients_as_they_are() -> None:
    optimizer, variable = keras.optimizers.SGD(1.0), keras.Variable(5.0)
    with mock.patch.object(type(optimizer), "_all_reduce_sum_gradients", autospec=True) as summed:
        summed.side_effect = lambda optimizer, pairs: pairs
        optimizer.apply([tf.constant(1.0)], [variable])
        assert summed.call_count == 1
        leave_gradients_as_they_are(optimizer)
        optimizer.apply([tf.constant(2.0)], [variable])
        assert summed.call_count == 1
    assert float(variable) == 2.0


def test_the_workers_of_a_cluster_with_parameter_servers_are_counted() -> None:
    spec = tf.train.ClusterSpec({"worker": ["a:1", "b:1"], "ps": ["c:1"], "chief": ["d:1"]})
    resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(spec)
    extended = parameter_server_strategy_v2.ParameterServerStrategyV2Extended
    strategy = mock.Mock(extended=extended(mock.Mock(), resolver, None))  # connects to nothing
    assert num_workers(strategy) == 2


def test_processes_wait_as_long_as_they_are_told() -> None:
    addresses = {"chief": ["a:1"], "worker": ["b:1", "c:1"]}
    with mock.patch.object(
        context.Context, "configure_coordination_service", autospec=True
    ) as configure:
        wait_for_peers(addresses, 2.5, 0.25)
    options = configure.call_args.kwargs
    assert [(job.name, job.num_tasks) for job in options["coordinated_jobs"]] == [
        ("chief", 1),
        ("worker", 2),
    ]
    assert options["service_leader"] == "/job:chief/replica:0/task:0"
    assert options["cluster_register_timeout_in_ms"] == 2500
    assert options["heartbeat_timeout_in_ms"] == 250


def test_the_embeddings_that_take_a_models_first_input_are_found() -> None:
    source, other = keras.Input((None,)), keras.Input((None,))
    shared, inner = keras.layers.Embedding(5, 2), keras.Sequential([keras.layers.Embedding(6, 2)])
    model = keras.Model([source, other], [shared(source), shared(other), inner(source)])
    assert set(embeddings_of_input(model)) == {shared, inner.layers[0]}
    assert embeddings_of_input(keras.Model([other, source], model.outputs)) == [shared]
    assert embeddings_of_input(keras.Model(source, shared(source + 1.0))) == []
    assert embeddings_of_input(keras.layers.Dense(3)) == []
    outer = keras.Model(source, model([source + 1.0, source]))  # not the inner model's first
    assert embeddings_of_input(outer) == [shared]
