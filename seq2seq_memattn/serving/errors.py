"""What a client is told when its request is not answered."""

RETRY_AFTER = "1"  # seconds; a full queue is shorter by then


class RequestError(Exception):
    """A request that gets no answer but a status and a message.

    Args:
        status: HTTP status, 400 or more.
        message: what was expected and what came, for the client.
        headers: of the response, beside those that every response has.
    """

    def __init__(self, status: int, message: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.headers = headers or {}


def invalid(message: str) -> RequestError:
    """The error of a request that can never be answered as it is."""
    return RequestError(400, message)


def not_found(message: str) -> RequestError:
    """The error of a request for what is not served."""
    return RequestError(404, message)
