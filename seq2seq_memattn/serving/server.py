"""The server process: loads models, listens, and ends on a signal."""

import contextlib
import gc
import logging
import re
import resource
import signal
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from seq2seq_memattn.packages import needed
from seq2seq_memattn.serving.options import ServerOptions
from seq2seq_memattn.text.files import read_lines

with needed():  # packages of the extra `serving`
    import uvicorn

    from seq2seq_memattn.serving.http.app import make_app
    from seq2seq_memattn.serving.http.connections import Connection
    from seq2seq_memattn.serving.service import Service

PATIENCE = 30  # seconds that open requests may still take after SIGTERM or SIGINT
IDLE_SECONDS = 5  # between two requests on a connection
MAX_CONNECTIONS = 4096  # limit on open connections, idle ones included
OTHER_FILES = 256  # open files that are not connections: models, libraries, the folder's listing
MODEL_NAME = re.compile(r"[A-Za-z0-9_.-]+")  # characters that need no quoting in a path


def serve(
    folders: Mapping[str, Path], options: ServerOptions, on_ready: Callable[[str], None]
) -> dict[str, float]:
    """Serves models until SIGTERM or SIGINT; then answers the open requests and returns.

    Call it from the main thread, which receives signals.

    Args:
        folders: export folder of each model, by name of the model.
        options: options of the server.
        on_ready: called with the server's URL when it starts to listen.

    Returns:
        "requests": requests for predictions that the service received, including those that it
        refused; "rows": rows answered; "seconds": seconds that the server listened.

    Raises:
        ValueError: if a name or an option is wrong, or a model cannot be loaded.
        OSError: if the address is in use, or a file cannot be read.
    """
    for name in folders:
        if not MODEL_NAME.fullmatch(name):
            raise ValueError(
                f"expected a model's name of letters, digits, '_', '-' and '.'; got {name!r}: "
                "--export_dir=NAME=DIR sets it"
            )
    token = _read_token(options.token_file) if options.token_file else None
    with (
        contextlib.closing(_bind(options.host, options.port)) as listener,
        _quick_collections(),
        _access_log(options.access_log),
    ):
        service = Service(folders, options)
        try:
            app = make_app(service, options, listener.getsockname()[0], token)
            config = uvicorn.Config(
                app,
                http=Connection,
                ws="none",
                lifespan="off",
                log_config=None,  # uvicorn's own configuration would log to standard output
                log_level="info" if options.access_log else "warning",
                server_header=False,
                limit_concurrency=_max_connections(),
                timeout_keep_alive=IDLE_SECONDS,
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


def _max_connections() -> int:
    """The limit on open connections; raises the process's limit on open files if possible."""
    needed = MAX_CONNECTIONS + OTHER_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return MAX_CONNECTIONS
    soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return max(soft - OTHER_FILES, 1)


class _Server(uvicorn.Server):
    """A uvicorn server that calls a function when it listens.

    Args:
        config: configuration of uvicorn.
        on_ready: called when the server listens.
        received: numbers of signals received before the server listened; if there are any, it ends
            as soon as it listens.
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
    """Keeps garbage collection away from imported modules while the block runs.

    A collection that includes them stops all threads for more than half a second, and unloading a
    version triggers a collection.
    """
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


@contextlib.contextmanager
def _access_log(is_wanted: bool) -> Iterator[None]:
    """Writes uvicorn's log of requests to standard error while the block runs, if it is wanted."""
    logger, handler = logging.getLogger("uvicorn.access"), logging.StreamHandler()
    if is_wanted:
        logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


@contextlib.contextmanager
def _ended_by_signals() -> Iterator[list[int]]:
    """Catches SIGTERM and SIGINT while the block runs, so that they end only uvicorn.

    When uvicorn has ended, it re-raises the signals that it caught, for the previous handlers. The
    default handlers would make the command fail, although the user asked the server to end.

    Yields:
        A list to which the caught signals are added.
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
    """Binds a socket to the address; it does not listen before the models are loaded."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with contextlib.ExitStack() as stack:
            listener = stack.enter_context(socket.socket(family, kind, protocol))
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            stack.pop_all()  # keeps the socket open
    except OSError as error:
        raise OSError(error.errno, error.strerror, f"{host}:{port}") from None
    return listener


def _url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


def _read_token(file: str) -> str:
    lines = "\n".join(read_lines(file)).strip().splitlines()
    if len(lines) != 1:  # a header cannot contain a line break
        raise ValueError(f"{file}: expected one line, the token; found {len(lines)}")
    return lines[0]
