"""Errors that a server sends to its clients."""

_RETRY_AFTER = "1"  # seconds; a full queue will be shorter then


class RequestError(Exception):
    """A request is refused or has failed; the client gets a status and a message.

    Args:
        status: HTTP status, 400 or more.
        message: what was expected and what was received, for the client.
        headers: additional headers of the response.
    """

    def __init__(self, status: int, message: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.headers = headers or {}


def invalid(message: str) -> RequestError:
    """The error for a request that is wrong (status 400)."""
    return RequestError(400, message)


def not_found(message: str) -> RequestError:
    """The error for a model, version or file that is not served (status 404)."""
    return RequestError(404, message)


def busy(message: str) -> RequestError:
    """The error for a request that the client should send again later (status 503)."""
    return RequestError(503, message, {"Retry-After": _RETRY_AFTER})
