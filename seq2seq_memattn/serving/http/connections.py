"""Connections of the server: how many may be open, and how long clients may be silent."""

import asyncio
import http
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from seq2seq_memattn.serving.errors import busy
from seq2seq_memattn.serving.http.error_response import error_response
from seq2seq_memattn.serving.protocol.predict import JSON_TYPE, format_error

HEAD_SECONDS = 10.0  # time limit for a request's line and headers
SEND_SECONDS = 60.0  # between two checks that a client is taking its answer
MOST_REFUSED = 128  # limit on the connections beyond the maximum, whose requests are refused


class Connection(H11Protocol):
    """A connection that a silent client cannot keep open, and whose errors are JSON.

    If as many connections are open as uvicorn's option `limit_concurrency` allows, requests on
    further connections are refused with status 503. If `MOST_REFUSED` further connections are open,
    any others are cut off. The time limit for bodies is in `app.py`.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        # At the limit, uvicorn itself would refuse requests of all connections, in plain text.
        self._max_connections, self.limit_concurrency = self.limit_concurrency, None
        self._head_timer: asyncio.TimerHandle | None = None
        self._send_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        beyond = len(self.connections) - (self._max_connections or len(self.connections))
        if beyond > MOST_REFUSED:
            transport.abort()
            return
        if beyond > 0:
            error = busy(f"{self._max_connections} connections are open")
            headers = {**error.headers, "Connection": "close"}
            self.app = error_response(error.status, error.message, headers)
        self._time_head()
        self._look_at_answer(None, 0)

    def connection_lost(self, exc: Exception | None) -> None:
        for timer in (self._head_timer, self._send_timer):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._time_head()

    def send_400_response(self, msg: str) -> None:
        self._end(400, f"Malformed request: {msg}")

    def _look_at_answer(self, cycle: Any, num_bytes: int) -> None:
        """Ends a connection whose client has read nothing of its answer since the last check.

        Args:
            cycle: the request that was being answered at the last check.
            num_bytes: bytes that were waiting to be sent at that time.
        """
        waiting = self.transport.get_write_buffer_size()
        if cycle is self.cycle and waiting and waiting >= num_bytes > 0:
            self.transport.abort()
            return
        self._send_timer = self.loop.call_later(
            SEND_SECONDS, self._look_at_answer, self.cycle, waiting
        )

    def _time_head(self) -> None:
        """Starts the timer for a request's head unless it runs; stops it during an answer."""
        is_answering = self.cycle is not None and not self.cycle.response_complete
        if is_answering and self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None
        elif not is_answering and self._head_timer is None:
            self._head_timer = self.loop.call_later(HEAD_SECONDS, self._head_is_late)

    def _head_is_late(self) -> None:
        received, _ = self.conn.trailing_data
        if received:
            self._end(408, f"the headers did not arrive in {HEAD_SECONDS:g} seconds")
        else:
            self.transport.close()

    def _end(self, status: int, message: str) -> None:
        """Sends an error and closes the connection."""
        body = format_error(message)
        head = h11.Response(
            status_code=status,
            headers=[
                ("Content-Type", JSON_TYPE),
                ("Content-Length", str(len(body))),
                ("Connection", "close"),
            ],
            reason=http.HTTPStatus(status).phrase.encode(),
        )
        state = self.conn.our_state
        if state in (h11.IDLE, h11.SEND_RESPONSE):  # no answer has been begun
            is_head = state is h11.SEND_RESPONSE and self.scope["method"] == "HEAD"
            for event in (head, *(() if is_head else (h11.Data(data=body),)), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        if self.cycle is not None:
            self.cycle.disconnected = True  # a handler that has not answered yet sends nothing
        self.transport.close()
