"""A user's saved model loads in a new process with few imports."""

from pathlib import Path

import keras
import numpy as np
import pytest

from tests.functional_program import build, examples
from tests.running import run_python

LOAD = """
import os
import sys

os.environ["KERAS_BACKEND"] = sys.argv[1]
if sys.argv[1] == "jax":
    sys.modules["tensorflow"] = None  # importing it fails from here on
{imports}
import numpy as np

model = keras.saving.load_model(sys.argv[2])
stored = np.load(sys.argv[3])
found = model.predict([stored["source"], stored["target"]], verbose=0)
assert np.abs(found - stored["logits"]).max() < 1e-5
assert model.loss.__class__.__name__ == "TokenCrossEntropy"
"""
IMPORTS = {
    "Keras first": "import keras\nimport seq2seq_memattn",
    "a name first": "from seq2seq_memattn import beam_search\nimport keras",
    "the package, then Keras, then a name": (
        "import seq2seq_memattn\nimport keras\nfrom seq2seq_memattn import KMemoryAttention"
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("order", IMPORTS)
@pytest.mark.parametrize("backend", ["tensorflow", "jax"])
def test_a_model_is_loaded_in_a_new_process(backend: str, order: str, tmp_path: Path) -> None:
    model, _ = build()
    source, target, _ = examples(4)
    from seq2seq_memattn import TokenCrossEntropy

    model.compile("adam", TokenCrossEntropy())
    model.save(tmp_path / "model.keras")
    logits = model.predict([source, target], verbose=0)
    np.savez(tmp_path / "stored.npz", source=source, target=target, logits=logits)
    script = LOAD.format(imports=IMPORTS[order])
    paths = (str(tmp_path / name) for name in ("model.keras", "stored.npz"))
    done = run_python("-c", script, backend, *paths)
    assert done.returncode == 0, done.stderr.decode()[-3000:]


def test_the_package_waits_for_keras() -> None:
    script = "import sys, seq2seq_memattn; sys.exit('keras' in sys.modules)"
    assert run_python("-c", script).returncode == 0
    assert keras.saving.get_registered_object("seq2seq_memattn>AttentionDecoder") is not None


def test_vocabularies_do_not_load_keras() -> None:
    script = (
        "import sys, seq2seq_memattn\n"
        "assert seq2seq_memattn.vocabulary.WordVocabulary(['a'], 'words.txt').encode('a') == [4]\n"
        "sys.exit('keras' in sys.modules)"
    )
    assert run_python("-c", script).returncode == 0
