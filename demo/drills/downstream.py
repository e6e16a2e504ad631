"""`Downstream`: a service that jobs call, on a port of this host. A drill says how it answers."""

import threading
import time
from collections.abc import Callable, Sequence
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Protocol

#: The status and the duration in seconds of a call, by the number of calls at work, this one included.
Behaviour = Callable[[int], tuple[HTTPStatus, float]]


def healthy(at_work: int) -> tuple[HTTPStatus, float]:  # noqa: ARG001 - a behaviour is given it
    return HTTPStatus.NO_CONTENT, 0.0


def down(at_work: int) -> tuple[HTTPStatus, float]:  # noqa: ARG001 - a behaviour is given it
    return HTTPStatus.SERVICE_UNAVAILABLE, 0.0


class Downstream(Protocol):
    port: int

    def behave(self, behaviour: Behaviour) -> None:
        """From the next call on."""

    def calls(self) -> Sequence[HTTPStatus]:
        """The statuses of all calls that have ended."""

    def close(self) -> None:
        """Answer no more calls."""


class LoopbackDownstream:
    """A server on loopback, with a thread for each call."""

    def __init__(self, *, sleep: Callable[[float], object] = time.sleep) -> None:
        self._sleep = sleep
        self._behaviour: Behaviour = healthy
        self._lock = threading.Lock()
        self._at_work = 0
        self._calls: list[HTTPStatus] = []
        self._server = _server(self._call)
        self.port = int(self._server.server_address[1])
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def behave(self, behaviour: Behaviour) -> None:
        self._behaviour = behaviour

    def calls(self) -> Sequence[HTTPStatus]:
        with self._lock:
            return tuple(self._calls)

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _call(self) -> HTTPStatus:
        with self._lock:
            self._at_work += 1
            status, seconds = self._behaviour(self._at_work)
        self._sleep(seconds)
        with self._lock:
            self._at_work -= 1
            self._calls.append(status)
        return status


def _server(call: Callable[[], HTTPStatus]) -> ThreadingHTTPServer:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.send_response(call())
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the base class
            """Not to the terminal."""

    return ThreadingHTTPServer(("127.0.0.1", 0), Handler)
