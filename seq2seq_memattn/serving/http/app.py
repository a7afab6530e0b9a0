"""The web application: TensorFlow Serving's REST paths, health, metrics and the page."""

import asyncio
import json
import mimetypes
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from seq2seq_memattn.serving.errors import RequestError, busy, invalid
from seq2seq_memattn.serving.http.access import (
    HEALTH_PATH,
    OPEN_FOLDER,
    CommonHeaders,
    HostGate,
    TokenGate,
)
from seq2seq_memattn.serving.http.error_response import error_response
from seq2seq_memattn.serving.layout import VERSION_NAME
from seq2seq_memattn.serving.metrics import CONTENT_TYPE
from seq2seq_memattn.serving.options import ServerOptions
from seq2seq_memattn.serving.protocol.predict import JSON_TYPE
from seq2seq_memattn.serving.service import CLIENT_GONE, Prediction, Service

BODY_SECONDS = 60.0  # time limit for receiving a body
MAX_OPEN = 1024  # limit on predictions whose bodies or answers are in memory
MODEL = "/v1/models/{name}"
VERSION = MODEL + "/versions/{version}"
PAGE = Path(__file__).with_name("page")
mimetypes.add_type("text/javascript", ".js")  # some systems map .js to another type


def make_app(
    service: Service, options: ServerOptions, address: str, token: str | None = None
) -> Starlette:
    """Makes the web application.

    Args:
        service: answers the requests.
        options: `ServerOptions`.
        address: the address that the server listens on; `options.host` may be a name.
        token: the token that requests must carry, except for the page and `/healthz`; None: no
            token is needed.

    Returns:
        The ASGI application. It does not close `service`.
    """
    endpoints = _Endpoints(service, options.max_body_bytes)
    routes = [
        Route("/", endpoints.page),
        Route("/models.json", endpoints.models),
        # Some installers link files instead of copying them; links need `follow_symlink`.
        Mount(OPEN_FOLDER, StaticFiles(directory=PAGE, follow_symlink=True)),
        Route(HEALTH_PATH, endpoints.health),
        Route("/metrics", endpoints.metrics),
    ]
    for path in (MODEL, VERSION):
        routes += [
            Route(path + ":predict", endpoints.predict, methods=["POST"]),
            Route(path + ":{verb}", endpoints.other_verb, methods=["POST"]),
            Route(path + ":{verb}", endpoints.malformed),
            Route(path + "/metadata", endpoints.metadata),
            Route(path, endpoints.status),
        ]
    app = Starlette(
        routes=routes,
        middleware=[
            Middleware(CommonHeaders),
            Middleware(HostGate, host=options.host, address=address, allowed=options.hosts),
            Middleware(TokenGate, token=token),
        ],
        exception_handlers={
            RequestError: _refuse,
            HTTPException: _refuse_http,
            Exception: _apologise,
        },
    )
    app.router.redirect_slashes = False  # redirects would trust the Host header
    return app


class _Endpoints:
    """The handlers of all paths.

    Args:
        service: answers the requests.
        max_body_bytes: largest body of a request.
    """

    def __init__(self, service: Service, max_body_bytes: int) -> None:
        self._service = service
        self._max_body_bytes = max_body_bytes
        self._num_open = 0  # predictions under way

    async def predict(self, request: Request) -> Response:
        self._num_open += 1
        try:
            return await self._predict(request)
        finally:
            self._num_open -= 1

    async def _predict(self, request: Request) -> Response:
        started = time.perf_counter()
        try:
            if self._num_open > MAX_OPEN:
                raise busy(f"{MAX_OPEN} requests are open")
            name, version = request.path_params["name"], _version(request)
            body = await _read_body(request, self._max_body_bytes)
        except RequestError as error:
            seconds = time.perf_counter() - started
            self._service.metrics.request_done("", "", error.status, 0, seconds)
            raise
        done = await _unless_gone(request, self._service.predict(name, version, body, started))
        if done is None:
            return Response(status_code=CLIENT_GONE)
        return Response(done.body, done.status, done.headers, JSON_TYPE)

    async def other_verb(self, request: Request) -> Response:
        raise invalid(f"{request.path_params['verb']!r} is not served here, only 'predict'")

    async def malformed(self, request: Request) -> Response:
        raise invalid(f"Malformed request: {request.method} {request.scope['path']}")

    async def status(self, request: Request) -> Response:
        found = self._service.status(request.path_params["name"], _version(request))
        return Response(found, media_type=JSON_TYPE)

    async def metadata(self, request: Request) -> Response:
        found = self._service.metadata(request.path_params["name"], _version(request))
        return Response(found, media_type=JSON_TYPE)

    async def health(self, request: Request) -> Response:
        del request
        return _json({"status": "ok"})  # the server listens only when all models are loaded

    async def metrics(self, request: Request) -> Response:
        del request
        return Response(self._service.metrics.format(), headers={"Content-Type": CONTENT_TYPE})

    async def models(self, request: Request) -> Response:
        del request
        return _json({"models": self._service.models()})

    async def page(self, request: Request) -> Response:
        del request
        return FileResponse(PAGE / "index.html")


async def _read_body(request: Request, max_bytes: int) -> bytes:
    """Reads a body; raises RequestError if it is compressed, or as soon as it proves too long."""
    coding = request.headers.get("content-encoding", "identity")
    if coding.lower() != "identity":
        raise RequestError(415, f"a body must not be compressed; its Content-Encoding is {coding}")
    too_long = RequestError(413, f"a body may have at most {max_bytes} bytes")
    announced = request.headers.get("content-length", "")
    if announced.isdecimal() and int(announced) > max_bytes:
        raise too_long
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for chunk in request.stream():
                body += chunk
                if len(body) > max_bytes:
                    raise too_long
    except TimeoutError:
        raise RequestError(408, f"the body did not arrive in {BODY_SECONDS:g} seconds") from None
    except ClientDisconnect:
        raise RequestError(CLIENT_GONE, "the client has disconnected") from None
    return bytes(body)


async def _unless_gone(
    request: Request, work: Coroutine[Any, Any, Prediction]
) -> Prediction | None:
    """Awaits work, and cancels it if the client disconnects; the body must have been read."""
    task = asyncio.create_task(work)
    gone = asyncio.create_task(_gone(request))
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        return task.result() if task.done() else None
    finally:
        task.cancel()
        gone.cancel()


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _version(request: Request) -> int | None:
    text = request.path_params.get("version")
    if text is not None and not VERSION_NAME.fullmatch(text):
        raise invalid(f"expected a whole number as version, got {text!r}")
    return None if text is None else int(text)


def _json(value: Any) -> Response:
    return Response(json.dumps(value), media_type=JSON_TYPE)


async def _refuse(request: Request, error: Exception) -> Response:
    del request
    if not isinstance(error, RequestError):
        raise error
    return error_response(error.status, error.message, error.headers)


async def _refuse_http(request: Request, error: Exception) -> Response:
    """Reports Starlette's errors, such as unknown paths or methods, in the protocol's form."""
    if not isinstance(error, HTTPException):
        raise error
    message = f"Malformed request: {request.method} {request.scope['path']}: {error.detail}"
    # TensorFlow Serving answers unknown paths of its protocol with 400.
    status = 400 if request.scope["path"].startswith("/v1/") else error.status_code
    return error_response(status, message, error.headers)


async def _apologise(request: Request, error: Exception) -> Response:
    del request, error  # the server logs it
    return error_response(500, "the server failed")
