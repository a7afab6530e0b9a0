"""Middleware of the application: access control, and headers for every response."""

import hmac
import ipaddress
from collections.abc import Iterable

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from seq2seq_memattn.serving.http.error_response import error_response

# Open without a token: the page, where users enter the token, and the health check.
HEALTH_PATH = "/healthz"
OPEN_PATHS = ("/", HEALTH_PATH)
OPEN_FOLDER = "/page/"

LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})

HEADERS = {
    "Content-Security-Policy": "default-src 'self'; frame-ancestors 'none'; base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-cache",
}


class HostGate:
    """Refuses requests that a page of another site may have made a visitor's browser send.

    A browser sends a plain-text POST to any address without asking, even to the visitor's own
    machine. The header Origin then names the page's site. With DNS rebinding, a site points its own
    name to the address of that machine, so the server looks like part of the site. The header Host
    then has the site's name.

    Args:
        app: the application that gets the requests.
        host: the name or address that the server was told to listen on.
        address: the address that it listens on. If it is a loopback address, Host must be `host`,
            this address, a name in `LOCAL_NAMES` or a name in `allowed`. At other addresses, Host
            is checked in the same way, but only if `allowed` is not empty.
        allowed: further names, which are also allowed in Origin.
    """

    def __init__(self, app: ASGIApp, host: str, address: str, allowed: Iterable[str]) -> None:
        self._app = app
        self._others = frozenset(name.lower() for name in allowed)
        own = {host.lower(), address.lower()}
        # An IPv6 address has brackets in Host.
        names = LOCAL_NAMES | own | {f"[{name}]" for name in own} | self._others
        self._names = names if _is_loopback(address) or self._others else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        message = self._refusal(scope) if scope["type"] == "http" else ""
        if not message:
            await self._app(scope, receive, send)
            return
        await error_response(403, message)(scope, receive, send)

    def _refusal(self, scope: Scope) -> str:
        """Why a request is refused; "" if it is not."""
        headers = Headers(scope=scope)
        host, origin = headers.get("host", "").lower(), headers.get("origin", "").lower()
        if (
            self._names is not None
            and scope["path"] != HEALTH_PATH  # health checks use IP addresses as Host
            and _name(host) not in self._names
        ):
            return f"the host name {_name(host)!r} is not allowed here; see --allowed_hosts"
        site = origin.rpartition("//")[2]
        is_own = not origin or site == host or _name(site) in self._others
        if scope["method"] == "POST" and not is_own:
            return f"pages of {origin!r} may not use this server; see --allowed_hosts"
        return ""


class TokenGate:
    """Passes on requests that carry the token or need none, and refuses all others.

    Args:
        app: the application that gets the requests.
        token: the bearer token that requests must send; None: all requests are passed on.
    """

    def __init__(self, app: ASGIApp, token: str | None) -> None:
        self._app = app
        self._token = None if token is None else token.encode("utf-8")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or _is_open(scope["path"]) or self._is_allowed(scope):
            await self._app(scope, receive, send)
            return
        message = "a token is needed: Authorization: Bearer TOKEN"
        response = error_response(401, message, {"WWW-Authenticate": "Bearer"})
        await response(scope, receive, send)

    def _is_allowed(self, scope: Scope) -> bool:
        if self._token is None:
            return True
        scheme, _, given = Headers(scope=scope).get("authorization", "").partition(" ")
        # Headers are decoded as Latin-1; encoding them again gives the bytes received. In Latin-1,
        # the last byte of a letter such as "à" would count as white space.
        given_bytes = given.strip(" \t").encode("latin-1")
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


def _name(host: str) -> str:
    """The name in a Host header, without the port."""
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdecimal() else host


def _is_loopback(address: str) -> bool:
    bound = ipaddress.ip_address(address)
    return (getattr(bound, "ipv4_mapped", None) or bound).is_loopback


def _is_open(path: str) -> bool:
    return path in OPEN_PATHS or path.startswith(OPEN_FOLDER)
