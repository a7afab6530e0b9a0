"""What the tests of the server ask it, without a network between."""

import contextlib
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import httpx

from seq2seq_memattn.serving.app import make_app
from seq2seq_memattn.serving.options import ServerOptions
from seq2seq_memattn.serving.service import Service

BODY_BYTES = 50_000


@contextlib.contextmanager
def running_service(folders: Mapping[str, Path], **options: Any) -> Any:
    """A service that is closed at the end, and looks for versions only when it is told to."""
    service = Service(folders, ServerOptions(**{"poll_seconds": 1000.0, **options}))
    try:
        yield service
    finally:
        service.close()


@contextlib.asynccontextmanager
async def client_of(service: Service, token: str | None = None) -> AsyncIterator[httpx.AsyncClient]:
    """A client of the application; what it answers with 500 is not raised here."""
    transport = httpx.ASGITransport(
        make_app(service, BODY_BYTES, token), raise_app_exceptions=False
    )
    async with httpx.AsyncClient(transport=transport, base_url="http://server") as client:
        yield client
