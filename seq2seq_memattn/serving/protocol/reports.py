"""Writes a model's status and metadata in the form of TensorFlow Serving's REST protocol."""

import json
from collections.abc import Iterable, Mapping

from google.protobuf import json_format
from google.protobuf.message import Message
from tensorflow.core.protobuf import meta_graph_pb2
from tensorflow_serving.apis import get_model_metadata_pb2, get_model_status_pb2

from seq2seq_memattn.serving.models.versions import VersionStatus

UNKNOWN_ERROR = 2  # as tensorflow.errors.UNKNOWN


def format_status(statuses: Iterable[VersionStatus]) -> bytes:
    """Writes the JSON form of a GetModelStatusResponse, newest version first."""
    response = get_model_status_pb2.GetModelStatusResponse()
    for status in sorted(statuses, key=lambda one: one.version, reverse=True):
        entry = response.model_version_status.add(version=status.version, state=int(status.state))
        entry.status.error_code = UNKNOWN_ERROR if status.error else 0
        entry.status.error_message = status.error
    return _to_json(response).encode("utf-8")


def format_metadata(
    name: str, version: int, signature_defs: Mapping[str, meta_graph_pb2.SignatureDef]
) -> bytes:
    """Writes the JSON form of a GetModelMetadataResponse.

    As in TensorFlow Serving's JSON, the type that protobuf itself adds to the map of signatures is
    left out.

    Args:
        name: name of the model.
        version: version of the model.
        signature_defs: signatures by name, from the SavedModel.

    Returns:
        JSON text.
    """
    response = get_model_metadata_pb2.GetModelMetadataResponse()
    response.model_spec.name = name
    response.model_spec.version.value = version
    signatures = get_model_metadata_pb2.SignatureDefMap()
    for signature, definition in signature_defs.items():
        signatures.signature_def[signature].CopyFrom(definition)
    parts = {
        "model_spec": json.loads(_to_json(response.model_spec)),
        "metadata": {"signature_def": json.loads(_to_json(signatures))},
    }
    return json.dumps(parts, indent=1).encode("utf-8")


def _to_json(message: Message) -> str:
    return json_format.MessageToJson(
        message,
        preserving_proto_field_name=True,
        always_print_fields_with_no_presence=True,
        indent=1,
    )
