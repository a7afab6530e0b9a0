"""Set-up of seq2seq_memattn: what it needs, and which packages it consists of."""

import re
from pathlib import Path

from setuptools import find_packages, setup

ROOT = Path(__file__).parent


def read_version() -> str:
    """Reads the version without importing the package, which would need Keras."""
    text = (ROOT / "seq2seq_memattn" / "_version.py").read_text(encoding="utf-8")
    match = re.search(r'^__version__ = "([^"]+)"$', text, re.MULTILINE)
    if match is None:
        raise ValueError('seq2seq_memattn/_version.py: no line __version__ = "..."')
    return match.group(1)


JAX = ["jax>=0.6"]
CUDA = ["tensorflow[and-cuda]>=2.20"]
SERVING = ["prometheus-client", "starlette", "tensorflow-serving-api>=2.20", "uvicorn"]
DEVELOPMENT = [
    "build",
    "httpx",
    "hypothesis",
    "ipykernel",
    "kubernetes-validate",
    "mypy",
    "nbclient",
    "nbformat",
    "pdoc",
    "playwright",
    "pytest>=8",
    "pytest-xdist",
    "ruff",
    *JAX,
    *SERVING,
]

setup(
    name="seq2seq_memattn",
    version=read_version(),
    description="Sequence-to-sequence models in Keras 3 with fixed-size memory attention",
    long_description=(ROOT / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    license_files=["LICENSE"],
    python_requires=">=3.11",
    packages=find_packages(
        include=[
            "seq2seq_memattn",
            "seq2seq_memattn.*",
            "experiments",
            "experiments.*",
            "data_prep",
            "data_prep.*",
        ]
    ),
    package_data={
        "seq2seq_memattn": ["py.typed", "*.pyi", "serving/page/*"],
        "data_prep": ["corpora/*.toml"],
        "experiments": ["clients/*", "clusters/*", "*.lua"],
    },
    install_requires=[
        "absl-py",
        "keras>=3.12",
        "lazy-loader",
        "matplotlib",
        "nltk",
        "numpy",
        "sacrebleu",
        "sacremoses",
        "sentencepiece",
        "tensorboard",
        "tensorflow>=2.20",
        "tensorflow-text>=2.20; platform_system != 'Windows'",
        "tqdm",
    ],
    extras_require={"dev": DEVELOPMENT, "jax": JAX, "cuda": CUDA, "serving": SERVING},
    zip_safe=False,
)
