"""What this process computes on: cores, threads, processor, GPU."""

import os
import platform
from pathlib import Path

# Linux's names for the instructions that multiply bfloat16: two on x86, "bf16" on ARM.
BFLOAT16_FEATURES = frozenset({"avx512_bf16", "amx_bf16", "bf16"})
# Linux's names for vector instructions, and the usual names, the fastest first. Speeds depend on
# these instructions, and virtual processors with the same name may have different ones.
VECTOR_FEATURES = {
    "amx_tile": "AMX",
    "avx512_bf16": "AVX-512 with bfloat16",
    "avx512_vnni": "AVX-512 with VNNI",
    "avx512f": "AVX-512",
    "avx2": "AVX2",
}
# Linux's names for the instructions that multiply 8-bit integers and add up the products.
INT8_FEATURES = frozenset({"avx512_vnni", "avx_vnni", "amx_int8"})
CPUINFO = Path("/proc/cpuinfo")  # Linux's description of the processor


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


def processor(cpuinfo: Path = CPUINFO) -> str:
    """The processor, the cores that this process may use, and its fastest vector instructions."""
    models = _listed(cpuinfo, "model name")
    name = models[0] if models else platform.processor() or platform.machine()
    features = _features(cpuinfo)
    vectors = [usual for linux, usual in VECTOR_FEATURES.items() if linux in features]
    return ", ".join([name, f"{num_cores()} cores", *vectors[:1]])


def has_bfloat16_units(cpuinfo: Path = CPUINFO) -> bool | None:
    """Whether the processor has instructions for bfloat16 products; None if unknown."""
    features = _features(cpuinfo)
    return bool(features & BFLOAT16_FEATURES) if features else None


def has_int8_units(cpuinfo: Path = CPUINFO) -> bool:
    """Whether the processor is known to have instructions for int8 products (VNNI or AMX)."""
    return bool(_features(cpuinfo) & INT8_FEATURES)


def _features(cpuinfo: Path) -> set[str]:
    """Linux's names of the processor's features; an empty set if they are unknown."""
    return {feature for line in _listed(cpuinfo, "flags", "Features") for feature in line.split()}


def _listed(cpuinfo: Path, *fields: str) -> list[str]:
    """The values of fields of `cpuinfo`, which lists each field once per core."""
    if not cpuinfo.exists():
        return []
    lines = cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines()
    pairs = (line.partition(":") for line in lines)
    return [value.strip() for name, _, value in pairs if name.strip() in fields]


def use_threads(threads: int) -> None:
    """Sets TensorFlow's number of threads before its first operation; raises ValueError on JAX."""
    import keras

    if keras.backend.backend() != "tensorflow":
        raise ValueError("the number of threads can only be set with the TensorFlow backend")
    import tensorflow as tf

    if tf.config.threading.get_intra_op_parallelism_threads() != threads:
        tf.config.threading.set_intra_op_parallelism_threads(threads)
        tf.config.threading.set_inter_op_parallelism_threads(threads)
