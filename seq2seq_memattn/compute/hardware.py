"""What this process computes on: cores, threads, processor, GPU."""

import os
import platform
from pathlib import Path

# Linux's names of the instructions that multiply bfloat16: two on x86, "bf16" on ARM.
BFLOAT16_FEATURES = frozenset({"avx512_bf16", "amx_bf16", "bf16"})


def num_cores() -> int:
    """Returns the number of CPU cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def hardware() -> str:
    """The processor, and the GPU if the backend of this process computes on one."""
    from seq2seq_memattn.compute.backend import gpu_name  # needs Keras

    gpu = gpu_name()
    return f"{gpu}; {processor()}" if gpu else processor()


def processor() -> str:
    """The processor and the number of its cores that this process may use."""
    name = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as stream:
            models = [line.split(":", 1)[1].strip() for line in stream if "model name" in line]
        name = models[0] if models else name
    except OSError:
        pass
    return f"{name}, {num_cores()} cores"


def has_bfloat16_units(cpuinfo: Path = Path("/proc/cpuinfo")) -> bool | None:
    """Whether the processor has instructions for bfloat16 products; None if unknown.

    Args:
        cpuinfo: Linux's description of the processor.
    """
    if not cpuinfo.exists():
        return None
    lines = cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines()
    listed = [line for line in lines if line.startswith(("flags", "Features"))]
    features = {feature for line in listed for feature in line.split()}
    return bool(features & BFLOAT16_FEATURES) if listed else None


def use_threads(threads: int) -> None:
    """Sets TensorFlow's number of threads, before its first operation; ValueError on JAX."""
    import keras

    if keras.backend.backend() != "tensorflow":
        raise ValueError("the number of threads can only be set with the TensorFlow backend")
    import tensorflow as tf

    if tf.config.threading.get_intra_op_parallelism_threads() != threads:
        tf.config.threading.set_intra_op_parallelism_threads(threads)
        tf.config.threading.set_inter_op_parallelism_threads(threads)
