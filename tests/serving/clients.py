"""A server's application and a client in one event loop, without a network."""

import asyncio
import contextlib
import json
from collections.abc import Callable, Coroutine, Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx

from seq2seq_memattn.serving.http.app import make_app
from seq2seq_memattn.serving.options import ServerOptions
from seq2seq_memattn.serving.service import Service

BODY_BYTES = 50_000
URL = "http://localhost"

Work = Callable[[httpx.AsyncClient], Coroutine[Any, Any, Any]]


class Running:
    """A service and its event loop.

    Args:
        service: the service that answers.
        options: options of the application.
        runner: runs the loop in which the service is always used.
    """

    def __init__(self, service: Service, options: ServerOptions, runner: asyncio.Runner) -> None:
        self.service = service
        self._options = options
        self._runner = runner

    def ask(self, work: Work, token: str | None = None) -> Any:
        """Runs `work` with a client of the application; returns its result."""

        async def run() -> Any:
            # Errors become answers with status 500 instead of exceptions.
            app = make_app(self.service, self._options, self._options.host, token)
            transport = httpx.ASGITransport(app, raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=transport, base_url=URL) as client:
                return await work(client)

        return self._runner.run(run())

    def get(self, path: str) -> httpx.Response:
        return self.ask(lambda client: client.get(path))

    def post(self, path: str, body: Any) -> httpx.Response:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.ask(lambda client: client.post(path, content=content))


@contextlib.contextmanager
def running(folders: Mapping[str, Path], **options: Any) -> Iterator[Running]:
    """A service for a block; by default, it does not look for new versions."""
    with asyncio.Runner() as runner:
        defaults = {"poll_seconds": 1000.0, "max_body_bytes": BODY_BYTES}
        given = ServerOptions(**{**defaults, **options})
        service = Service(folders, given)
        try:
            yield Running(service, given, runner)
        finally:
            service.close()
