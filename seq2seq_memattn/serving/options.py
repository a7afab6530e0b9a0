"""The options of a server."""

from dataclasses import dataclass

from seq2seq_memattn.config import Options, option

LAST_PORT = 65_535


@dataclass(frozen=True)
class ServerOptions(Options):
    """How a server listens, batches and bounds what it takes."""

    host: str = option(
        "127.0.0.1", "address to listen at; 0.0.0.0: all of this machine's", group="Address"
    )
    port: int = option(8501, "port to listen at; 0: a free one", group="Address")
    max_batch: int = option(32, "sentences computed at once", group="Batches")
    max_wait_ms: float = option(
        5.0,
        "milliseconds that a free model waits for as many sentences as came together before",
        group="Batches",
    )
    max_queue: int = option(
        512, "sentences that may wait; more are refused with status 503", group="Batches"
    )
    parallel_batches: int = option(
        1, "batches of a model computed at once, sharing the cores", group="Batches"
    )
    max_body_bytes: int = option(
        262_144, "bytes of a request's body; more: status 413", group="Requests"
    )
    max_text_bytes: int = option(
        5_000, "bytes of one text, in UTF-8; more: status 400", group="Requests"
    )
    token_file: str = option(
        "", "file with a token that requests must carry; empty: none needed", group="Requests"
    )
    poll_seconds: float = option(2.0, "seconds between looks for new versions", group="Models")
    access_log: bool = option(
        False, "say each request, without its text, on standard error", group="Requests"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_at_least(0, "port", "max_wait_ms")
        self._check_at_least(1, "max_batch", "max_queue", "parallel_batches")
        self._check_at_least(1, "max_body_bytes", "max_text_bytes")
        if self.port > LAST_PORT:
            raise ValueError(f"`port` must be at most {LAST_PORT}; got {self.port}.")
        if not self.poll_seconds > 0:
            raise ValueError(f"`poll_seconds` must be positive; got {self.poll_seconds}.")
