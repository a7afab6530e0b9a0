"""A server process: loads models, listens, and ends when it is told to."""

import contextlib
import gc
import re
import signal
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from seq2seq_memattn.packages import needed
from seq2seq_memattn.serving.options import ServerOptions

with needed():  # what the extra `serving` brings
    import uvicorn

    from seq2seq_memattn.serving.http.app import make_app
    from seq2seq_memattn.serving.service import Service

# What clients may be waiting for when the server is told to end.
PATIENCE = 30  # seconds
MAX_CONNECTIONS = 4096  # open at a time, idle ones included
MODEL_NAME = re.compile(r"[A-Za-z0-9_.-]+")  # what needs no quoting in a path


def serve(
    folders: Mapping[str, Path], options: ServerOptions, on_ready: Callable[[str], None]
) -> dict[str, float]:
    """Serves models until SIGTERM or SIGINT comes; then answers what has come, and returns.

    Call it from the main thread, which receives signals.

    Args:
        folders: export folder of each model by its name.
        options: of the server.
        on_ready: called with the server's URL as soon as it listens.

    Returns:
        "requests" that came, refused ones too, "rows" that were answered, and "seconds" that it
        listened.

    Raises:
        ValueError: if a name or an option is wrong, or a model cannot be loaded.
        OSError: if the address is taken, or a file cannot be read.
    """
    for name in folders:
        if not MODEL_NAME.fullmatch(name):
            raise ValueError(
                f"expected a model's name of letters, digits, '_', '-' and '.'; got {name!r}: "
                "--export_dir=NAME=DIR sets it"
            )
    token = _read_token(Path(options.token_file)) if options.token_file else None
    with contextlib.closing(_bind(options.host, options.port)) as listener, _quick_collections():
        service = Service(folders, options)
        try:
            app = make_app(service, options.max_body_bytes, token)
            config = uvicorn.Config(
                app,
                http="h11",
                ws="none",
                lifespan="off",
                log_config=None,  # the application's, so that nothing comes to standard output
                log_level="info" if options.access_log else "warning",
                server_header=False,
                limit_concurrency=MAX_CONNECTIONS,
                timeout_graceful_shutdown=PATIENCE,
            )
            started = time.perf_counter()
            with _ended_by_signals() as received:
                _Server(config, lambda: on_ready(_url(listener)), received).run([listener])
            return {
                "requests": service.metrics.num_requests,
                "rows": service.metrics.num_rows,
                "seconds": round(time.perf_counter() - started, 3),
            }
        finally:
            service.close()


class _Server(uvicorn.Server):
    """A uvicorn server that says when it listens.

    Args:
        config: of uvicorn.
        on_ready: called then.
        received: numbers of signals that came before it listens, and end it then.
    """

    def __init__(
        self, config: uvicorn.Config, on_ready: Callable[[], None], received: Sequence[int]
    ) -> None:
        super().__init__(config)
        self._on_ready = on_ready
        self._received = received

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_ready()
        if self._received:
            self.should_exit = True


@contextlib.contextmanager
def _quick_collections() -> Iterator[None]:
    """Within it, what has been imported is not looked through for garbage.

    That would stop all threads for more than half a second, at the latest when a version is
    unloaded.
    """
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


@contextlib.contextmanager
def _ended_by_signals() -> Iterator[list[int]]:
    """Within it, the signals that end uvicorn end nothing else.

    Having ended, uvicorn raises them once more for those who handled them before: for the command
    that would be a failure, but an end that was asked for is none.

    Yields:
        The signals that uvicorn did not handle, as they come.
    """
    received: list[int] = []
    numbers = (signal.SIGTERM, signal.SIGINT)
    before = {
        number: signal.signal(number, lambda number, _: received.append(number))
        for number in numbers
    }
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _bind(host: str, port: int) -> socket.socket:
    """A socket with its address, which takes no connections yet: models are loaded first."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with contextlib.ExitStack() as stack:
            listener = stack.enter_context(socket.socket(family, kind, protocol))
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            stack.pop_all()  # it stays open
    except OSError as error:
        raise OSError(error.errno, error.strerror, f"{host}:{port}") from None
    return listener


def _url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


def _read_token(file: Path) -> str:
    token = file.read_text(encoding="utf-8").strip()
    if not token:
        raise ValueError(f"{file}: expected a token, found none")
    return token
