"""Sends the clicks of a log to the deployed shortener over HTTP, on several connections at once."""

import http.client
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import urlsplit

from demo.access_log import Click

#: Enough to fill the batches of the worker. More requests would only wait in the emulator.
CONNECTIONS = 8
TIMEOUT_SECONDS = 30


@dataclass(frozen=True, slots=True)
class Clicked:
    """The answer of the shortener to one click."""

    status: int
    #: The click was sent before with the same key, and is not counted again.
    replayed: bool


class Clicker:
    """Sends clicks to the API at `base_url`, on one connection for each thread."""

    def __init__(self, base_url: str) -> None:
        url = urlsplit(base_url)
        self._host, self._port, self._path = url.hostname or "", url.port, url.path
        self._local = threading.local()

    def send_all(self, clicks: Sequence[Click], *, on_answer: Callable[[], object]) -> list[Clicked]:
        """Send all clicks and return the answers in the same order. Calls `on_answer` after each answer."""

        def send(click: Click) -> Clicked:
            answer = self._send(click)
            on_answer()
            return answer

        with ThreadPoolExecutor(CONNECTIONS) as pool:
            return list(pool.map(send, clicks))

    def _send(self, click: Click) -> Clicked:
        connection = self._connection()
        # The emulator sees every client at 127.0.0.1, so the header of a trusted proxy carries the address of the log.
        connection.putrequest("GET", f"{self._path}/{click.code}")
        connection.putheader("X-Forwarded-For", click.address)
        connection.putheader("Idempotency-Key", f"line-{click.line}")
        for name, value in {"User-Agent": click.agent, "Referer": click.referrer}.items():
            if value:
                connection.putheader(name, value.encode("latin-1"))
        connection.endheaders()
        answer = connection.getresponse()
        answer.read()
        return Clicked(status=answer.status, replayed=answer.headers.get("Idempotent-Replayed") == "true")

    def _connection(self) -> http.client.HTTPConnection:
        if not hasattr(self._local, "connection"):
            self._local.connection = http.client.HTTPConnection(self._host, self._port, timeout=TIMEOUT_SECONDS)
        connection: http.client.HTTPConnection = self._local.connection
        return connection


def redirected(answers: Sequence[Clicked]) -> int:
    return sum(answer.status == HTTPStatus.FOUND for answer in answers)
