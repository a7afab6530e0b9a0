"""Where the time of TensorFlow's graphs goes, from a trace of its executor's threads."""

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import keras

PRODUCTS = "matrix products"
ELEMENTWISE = "element-wise"
COPIES = "copies"
REST = "executor"

# By parts of an operation's type; types that are nowhere here compute numbers one by one.
_COPIES = (
    "Concat", "Split", "Pack", "Slice", "Gather", "Transpose", "Pad", "ZerosLike", "Fill",
    "TensorList", "TensorArray", "Tile", "Scatter", "BroadcastTo", "Reverse", "Cast", "Range",
)  # fmt: skip
# What starts operations, and those that move no numbers.
_EXECUTOR = frozenset((
    "Process", "ParallelFor", "ExecutorDoneCallback", "Switch", "Merge", "Enter", "Exit",
    "NextIteration", "LoopCond", "While", "StatelessWhile", "If", "StatelessIf", "PartitionedCall",
    "StatefulPartitionedCall", "Const", "ReadVariableOp", "NoOp", "Identity", "IdentityN",
    "Reshape", "ExpandDims", "Squeeze", "Shape", "ShapeN", "Size", "TensorListGetItem",
    "TensorListReserve", "TensorListLength",
))  # fmt: skip


def profile(work: Callable[[], Any]) -> dict[str, float]:
    """The share of each kind of work in the time of TensorFlow's executor.

    TensorFlow must have one thread (`machine.use_threads`): the time of several is no sum, since
    one that waits for another, or has lent it half of a product, would count like one that works.

    Args:
        work: runs graphs that were traced and run before.

    Returns:
        dict: share of 1 by kind: `PRODUCTS`, `ELEMENTWISE`, `COPIES`, `REST`.

    Raises:
        ValueError: the backend is not TensorFlow.
    """
    if keras.backend.backend() != "tensorflow":
        raise ValueError("a profile needs the TensorFlow backend")
    import tensorflow as tf

    options = tf.profiler.experimental.ProfilerOptions(
        host_tracer_level=2, python_tracer_level=0, device_tracer_level=0
    )
    with tempfile.TemporaryDirectory() as folder:
        with tf.profiler.experimental.Profile(folder, options):
            work()
        return _shares(_threads(Path(folder)))


Event = tuple[int, int, str]  # start and end in picoseconds, type of the operation


def _threads(folder: Path) -> list[list[Event]]:
    """The operations that each of the executor's threads ran."""
    from tensorflow.tsl.profiler.protobuf import xplane_pb2

    space = xplane_pb2.XSpace()
    (path,) = folder.rglob("*.xplane.pb")
    space.ParseFromString(path.read_bytes())
    threads = []
    for plane in space.planes:
        # Events are named name:Type.
        types = {key: x.name.rsplit(":", 1)[-1] for key, x in plane.event_metadata.items()}
        for line in plane.lines:
            if not line.name.startswith("tf_Compute"):
                continue
            events = [
                (event.offset_ps, event.duration_ps, types[event.metadata_id])
                for event in line.events
            ]
            start = line.timestamp_ns * 1000
            threads.append([(start + a, start + a + b, kind) for a, b, kind in events])
    return threads


def _shares(threads: Sequence[Sequence[Event]]) -> dict[str, float]:
    """Shares of the time between the first operation's start and the last one's end."""
    totals = dict.fromkeys((PRODUCTS, ELEMENTWISE, COPIES, REST), 0.0)
    for events in threads:
        done = 0
        for start, end, kind in sorted(events):
            # The executor's events surround those of its operations.
            if kind in _EXECUTOR or end <= done:
                continue
            totals[_kind(kind)] += end - max(start, done)
            done = end
    ends = [end for events in threads for _, end, _ in events]
    if not ends:
        raise ValueError("the trace has no operations")
    whole = len(threads) * (max(ends) - min(start for events in threads for start, _, _ in events))
    totals[REST] = whole - sum(totals.values())
    return {kind: total / whole for kind, total in totals.items()}


def _kind(operation: str) -> str:
    if "MatMul" in operation:
        return PRODUCTS
    return COPIES if any(part in operation for part in _COPIES) else ELEMENTWISE
