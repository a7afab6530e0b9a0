"""The options of a server."""

import re
from dataclasses import dataclass

from seq2seq_memattn.config import Options, option

LAST_PORT = 65_535
MOST_POLL_SECONDS = 86_400  # a day
HOST_NAME = re.compile(r"[\w.-]+|\[[0-9a-fA-F:.]+\]")  # a name, or an IPv6 address in brackets


@dataclass(frozen=True)
class ServerOptions(Options):
    """Options of a server: its address, its batches and the limits of requests."""

    host: str = option(
        "127.0.0.1", "address to listen on; 0.0.0.0: all addresses of this machine", group="Address"
    )
    port: int = option(
        8501, "port to listen on; 0: any free port", group="Address", least=0, most=LAST_PORT
    )
    allowed_hosts: str = option(
        "",
        "names under which browsers reach the server, separated by commas, if it is behind a proxy",
        group="Address",
    )
    max_batch: int = option(32, "maximum number of sentences per batch", group="Batches", least=1)
    max_wait_ms: float = option(
        5.0,
        "longest time in milliseconds that an idle model waits for more sentences",
        group="Batches",
        least=0,
    )
    max_queue: int = option(
        512,
        "maximum number of waiting sentences; further ones get status 503",
        group="Batches",
        least=1,
    )
    parallel_batches: int = option(
        1, "batches that one model computes at the same time", group="Batches", least=1
    )
    max_body_bytes: int = option(
        262_144, "largest body of a request in bytes; larger: status 413", group="Requests", least=1
    )
    max_text_bytes: int = option(
        5_000, "longest text in bytes of UTF-8; longer: status 400", group="Requests", least=1
    )
    token_file: str = option(
        "",
        "file with the bearer token that requests must send; empty: no token needed",
        group="Requests",
    )
    poll_seconds: float = option(2.0, "seconds between checks for new versions", group="Models")
    access_log: bool = option(
        False, "log each request, without its text, to standard error", group="Requests"
    )

    @property
    def hosts(self) -> list[str]:
        """The names of `allowed_hosts`."""
        return [name.strip() for name in self.allowed_hosts.split(",") if name.strip()]

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in self.hosts:
            if not HOST_NAME.fullmatch(name):
                raise ValueError(
                    f"`allowed_hosts`: expected names without scheme and port; got {name!r}."
                )
        if not 0 < self.poll_seconds <= MOST_POLL_SECONDS:
            raise ValueError(
                f"`poll_seconds` must be in (0, {MOST_POLL_SECONDS:,}]; got {self.poll_seconds}."
            )
