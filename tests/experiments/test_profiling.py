import tensorflow as tf

from experiments import profiling
from experiments.profiling import COPIES, ELEMENTWISE, PRODUCTS, REST


def test_an_operation_counts_once_and_the_rest_is_the_executors():
    threads = [
        [
            (0, 100, "Process"),
            (10, 30, "_MklMatMul"),
            (12, 28, "ParallelFor"),
            (40, 60, "ConcatV2"),
            (50, 60, "AddV2"),  # within another: part of it
        ],
        [(0, 40, "Tanh"), (40, 50, "MatMul")],
    ]
    shares = profiling._shares(threads)
    assert shares == {PRODUCTS: 0.15, ELEMENTWISE: 0.2, COPIES: 0.1, REST: 0.55}


def test_products_that_take_all_the_time_have_most_of_it():
    matrix = tf.ones([600, 600])

    @tf.function(autograph=False)
    def work():
        return tf.while_loop(
            lambda t, x: t < 30, lambda t, x: (t + 1, matrix @ x / 600), [0, matrix]
        )

    work()
    shares = profiling.profile(work)
    assert abs(sum(shares.values()) - 1) < 1e-6
    assert shares[PRODUCTS] > max(shares[COPIES], shares[ELEMENTWISE])
