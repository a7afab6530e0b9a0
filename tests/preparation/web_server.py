"""A local web server of made-up files, which can imitate faulty servers and connections."""

import dataclasses
import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread


@dataclasses.dataclass
class Server:
    """The files and behaviour of a web server, and its requests so far.

    Args:
        files: contents by path, without the leading `/`.
        url: the server's address.
        cuts: for each of the next answers, the bytes after which the connection is cut.
        busy: number of requests that are first answered with status 503.
        knows_ranges: whether the server honours requests for a part of a file.
        requests: path and range of each request.
    """

    files: dict[str, bytes]
    url: str = ""
    cuts: list[int] = dataclasses.field(default_factory=list)
    busy: int = 0
    knows_ranges: bool = True
    requests: list[tuple[str, str]] = dataclasses.field(default_factory=list)


@contextmanager
def serving(files: dict[str, bytes]) -> Iterator[Server]:
    """Serves files for a block."""
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
            if start >= len(content) > 0:
                self.send_response(416)
                self.send_header("Content-Range", f"bytes */{len(content)}")
                self.send_header("Content-Length", "0")
                return self.end_headers()
            self.send_response(206 if start else 200)
            self.send_header("ETag", tag)
            self.send_header("Content-Length", str(len(content) - start))
            self.end_headers()
            if server.cuts:
                self.wfile.write(content[start : start + server.cuts.pop(0)])
                self.close_connection = True
                return None
            self.wfile.write(content[start:])
            return None

    return Handler
