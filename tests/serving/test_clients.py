"""Each client in `experiments/clients` works with a server in another thread."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import pytest
import tensorflow as tf
from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc

from experiments.benchmarks.serving import serving
from tests.running import ROOT, run_python

CLIENTS = ROOT / "experiments" / "clients"


class _PredictionService(prediction_service_pb2_grpc.PredictionServiceServicer):
    """Implements TensorFlow Serving's `Predict` for a SavedModel."""

    def __init__(self, folder: Path) -> None:
        self._model = tf.saved_model.load(str(folder))

    def Predict(self, request: Any, context: Any) -> predict_pb2.PredictResponse:
        function = self._model.signatures[request.model_spec.signature_name]
        inputs = {
            name: tf.constant(tf.make_ndarray(value)) for name, value in request.inputs.items()
        }
        response = predict_pb2.PredictResponse()
        for name, output in function(**inputs).items():
            response.outputs[name].CopyFrom(tf.make_tensor_proto(output.numpy()))
        return response


@pytest.fixture
def grpc_address(reverser_folder: Path) -> Iterator[str]:
    server = grpc.server(ThreadPoolExecutor(1))
    service = _PredictionService(reverser_folder / "1")
    prediction_service_pb2_grpc.add_PredictionServiceServicer_to_server(service, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield f"127.0.0.1:{port}"
    server.stop(grace=None).wait()


@pytest.mark.slow
def test_the_http_client_prints_the_best_translations_of_many_lines(reverser_folder: Path) -> None:
    lines = [f"a b {i}" for i in range(250)] + ["a\rb"]  # a carriage return does not end a line
    lines += [f"{'щ' * 2000} {i}" for i in range(150)]  # too long for bodies of 100 lines
    with serving(reverser_folder) as server:
        process = run_python(
            str(CLIENTS / "http_client.py"),
            f"http://{server.address}/",  # as the server prints it
            "reverser",
            standard_input="".join(f"{line}\r\n" for line in lines).encode(),
        )
    assert process.returncode == 0, process.stderr.decode()
    found = process.stdout.decode().split("\n")[:-1]
    assert found[:250] == [f"{i} b a" for i in range(250)] and len(found) == 401


@pytest.mark.slow
def test_the_http_client_sends_a_token(reverser_folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("secret\n")
    with serving(reverser_folder, f"--token_file={file}") as server:
        where = (str(CLIENTS / "http_client.py"), f"http://{server.address}", "reverser")
        given = run_python(*where, "secret", standard_input=b"a b\n")
        without = run_python(*where, standard_input=b"a b\n")
    assert given.stdout == b"b a\n", given.stderr
    assert without.returncode != 0 and b"401" in without.stderr


def test_the_grpc_client_prints_the_best_translations(grpc_address: str) -> None:
    process = run_python(
        str(CLIENTS / "grpc_client.py"),
        grpc_address,
        "model",
        standard_input=("a b c\nd é\n" + "x\n" * 200).encode(),
    )
    assert process.returncode == 0, process.stderr.decode()
    assert process.stdout.decode().splitlines() == ["c b a", "é d", *["x"] * 200]
