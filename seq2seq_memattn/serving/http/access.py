"""Middleware of the application: access control, and headers for every response."""

import hmac

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from seq2seq_memattn.serving.protocol.predict import JSON_TYPE, format_error

# Open without a token: the page, where users enter the token, and the health check.
OPEN_PATHS = ("/", "/healthz")
OPEN_FOLDER = "/page/"
MODELS_PATH = "/page/models.json"

HEADERS = {
    "Content-Security-Policy": "default-src 'self'; frame-ancestors 'none'; base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-cache",
}


class TokenGate:
    """Passes on requests that carry the token or need none, and refuses all others.

    Args:
        app: the application that gets the requests.
        token: the bearer token of the Authorization header; None passes all requests on.
    """

    def __init__(self, app: ASGIApp, token: str | None) -> None:
        self._app = app
        self._token = None if token is None else token.encode("utf-8")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or _is_open(scope["path"]) or self._is_allowed(scope):
            await self._app(scope, receive, send)
            return
        response = Response(
            format_error("a token is needed: Authorization: Bearer TOKEN"),
            401,
            {"WWW-Authenticate": "Bearer"},
            JSON_TYPE,
        )
        await response(scope, receive, send)

    def _is_allowed(self, scope: Scope) -> bool:
        if self._token is None:
            return True
        scheme, _, given = Headers(scope=scope).get("authorization", "").partition(" ")
        # Headers are decoded as Latin-1; encoding them again gives the bytes received.
        given_bytes = given.strip().encode("latin-1")
        return scheme.lower() == "bearer" and hmac.compare_digest(given_bytes, self._token)


class CommonHeaders:
    """Adds headers for browsers to every response, except for internal server errors.

    Args:
        app: the application whose responses get the headers.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_more(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, send_more)


def _is_open(path: str) -> bool:
    return path in OPEN_PATHS or (path.startswith(OPEN_FOLDER) and path != MODELS_PATH)
