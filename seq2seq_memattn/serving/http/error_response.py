"""The response that reports an error in the form of the protocol."""

from collections.abc import Mapping

from starlette.responses import Response

from seq2seq_memattn.serving.protocol.predict import JSON_TYPE, format_error


def error_response(status: int, message: str, headers: Mapping[str, str] | None = None) -> Response:
    """The response with an HTTP status and a message for the client."""
    return Response(format_error(message), status, headers, JSON_TYPE)
