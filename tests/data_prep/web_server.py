"""A local web server of made-up files that answers as servers and lines do, bad ones too."""

import dataclasses
import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread


@dataclasses.dataclass
class Server:
    """What is served, and what was asked for.

    Args:
        files: contents by path, without the first `/`.
        url: of the server.
        cut_after: bytes of a body after which the connection is cut, for so many answers.
        busy: answers that are 503 before all others.
        knows_ranges: whether a part of a file can be asked for.
        requests: path and range of each request.
    """

    files: dict[str, bytes]
    url: str = ""
    cut_after: tuple[int, int] = (0, 0)
    busy: int = 0
    knows_ranges: bool = True
    requests: list[tuple[str, str]] = dataclasses.field(default_factory=list)


@contextmanager
def serving(files: dict[str, bytes]) -> Iterator[Server]:
    """Serves files while a block runs."""
    server = Server(files)
    listener = ThreadingHTTPServer(("127.0.0.1", 0), _handler(server))
    server.url = f"http://127.0.0.1:{listener.server_port}"
    thread = Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server
    finally:
        listener.shutdown()
        listener.server_close()
        thread.join()


def _handler(server: Server) -> Callable[..., BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            pass

        def do_GET(self) -> None:
            wanted = self.headers.get("Range", "")
            server.requests.append((self.path[1:], wanted))
            if server.busy:
                server.busy -= 1
                return self.send_error(503)
            content = server.files.get(self.path[1:])
            if content is None:
                return self.send_error(404)
            tag = f'"{hashlib.sha256(content).hexdigest()[:8]}"'
            start = 0
            if wanted and server.knows_ranges and self.headers.get("If-Range") == tag:
                start = int(wanted.removeprefix("bytes=").removesuffix("-"))
            self.send_response(206 if start else 200)
            self.send_header("ETag", tag)
            self.send_header("Content-Length", str(len(content) - start))
            self.end_headers()
            length, times = server.cut_after
            if times:
                server.cut_after = (length, times - 1)
                self.wfile.write(content[start : start + length])
                self.close_connection = True
                return None
            self.wfile.write(content[start:])
            return None

    return Handler
