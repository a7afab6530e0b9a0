import json

from google.protobuf import json_format
from tensorflow.core.protobuf import meta_graph_pb2
from tensorflow_serving.apis import get_model_metadata_pb2, get_model_status_pb2

from seq2seq_memattn.serving.models.versions import State, VersionStatus
from seq2seq_memattn.serving.protocol.reports import format_metadata, format_status


def test_the_status_has_the_documented_form() -> None:
    body = format_status([VersionStatus(123, State.AVAILABLE)])
    assert json.loads(body) == {
        "model_version_status": [
            {
                "version": "123",
                "state": "AVAILABLE",
                "status": {"error_code": "OK", "error_message": ""},
            }
        ]
    }


def test_the_status_is_a_message_of_tensorflow_serving() -> None:
    statuses = [VersionStatus(1, State.AVAILABLE), VersionStatus(2, State.END, "damaged")]
    parsed = json_format.Parse(
        format_status(statuses), get_model_status_pb2.GetModelStatusResponse()
    )
    newest, oldest = parsed.model_version_status
    states = get_model_status_pb2.ModelVersionStatus.State
    assert (newest.version, newest.state) == (2, states.END)
    assert (newest.status.error_code, newest.status.error_message) == (2, "damaged")
    assert (oldest.version, oldest.state, oldest.status.error_code) == (1, states.AVAILABLE, 0)


def test_every_state_is_one_of_tensorflow_serving() -> None:
    states = get_model_status_pb2.ModelVersionStatus.State
    assert {state.name: int(state) for state in State}.items() <= dict(states.items()).items()


def test_the_metadata_are_messages_of_tensorflow_serving() -> None:
    definition = meta_graph_pb2.SignatureDef(method_name="tensorflow/serving/predict")
    definition.inputs["text"].dtype = 7
    definition.inputs["text"].tensor_shape.dim.add(size=-1)
    body = json.loads(format_metadata("reverser", 3, {"align": definition}))
    assert body["model_spec"] == {"name": "reverser", "version": "3", "signature_name": ""}
    written = body["metadata"]["signature_def"]
    parsed = json_format.ParseDict(written, get_model_metadata_pb2.SignatureDefMap())
    assert dict(parsed.signature_def) == {"align": definition}
    (axis,) = written["signature_def"]["align"]["inputs"]["text"]["tensor_shape"]["dim"]
    assert axis["size"] == "-1"
