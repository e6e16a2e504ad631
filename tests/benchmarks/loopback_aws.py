"""`python -m tests.benchmarks.loopback_aws FOLDER`: DynamoDB and SQS on 127.0.0.1, over TLS, as both builds call them.

Prints its port. A process of its own, so that its CPU time is not that of a build. It ends with its standard input.
"""

import asyncio
import json
import ssl
import sys
import zlib
from pathlib import Path

from tests.benchmarks import certificate
from tests.benchmarks.loopback_state import CALLED, State, body_of

#: Not an operation of AWS: the benchmark sets the delay of all answers, and takes the counts.
CONTROL = "Benchmark.Control"


class Server:
    def __init__(self) -> None:
        self.state = State()
        self.delay_seconds = 0.0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                headers = dict(
                    line.lower().split(": ", 1) for line in head.decode("latin-1").splitlines()[1:] if ": " in line
                )
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                answer = await self._answer(headers.get("x-amz-target", ""), body, len(head))
                writer.write(answer)
                await writer.drain()
        except (asyncio.CancelledError, asyncio.IncompleteReadError, ConnectionError, ssl.SSLError):
            # The client has closed its connection, or the server ends.
            writer.close()

    async def _answer(self, target: str, body: bytes, head_bytes: int) -> bytes:
        request = json.loads(body or b"{}")
        if target == CONTROL.lower():
            self.delay_seconds = request["delay_seconds"]
            return _response(body_of(self.state.take()))
        operation = OPERATIONS[target.rpartition(".")[2]]
        answer = _response(body_of(self.state.answer(operation, request)))
        self.state.counts["bytes"] += head_bytes + len(body) + len(answer)
        if self.delay_seconds:
            await asyncio.sleep(self.delay_seconds)
        return answer


#: By the name in lower case, since the headers are read so.
OPERATIONS = {name.lower(): name for name in CALLED}


def _response(body: bytes) -> bytes:
    """With the headers that the SDK reads; it checks the sum of DynamoDB's answers."""
    return (
        b"HTTP/1.1 200 OK\r\nServer: Server\r\nDate: Thu, 01 Jan 2026 00:00:00 GMT\r\n"
        b"Content-Type: application/x-amz-json-1.0\r\n"
        b"x-amzn-RequestId: ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789ABCDEFGHIJKLMNOPQRST\r\n"
        b"x-amz-crc32: %d\r\nContent-Length: %d\r\nConnection: keep-alive\r\n\r\n%b"
        % (zlib.crc32(body), len(body), body)
    )


async def main(folder: Path) -> None:
    pem = certificate.write(folder)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    server = await asyncio.start_server(Server().serve, "127.0.0.1", 0, ssl=context, limit=2**20)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    server.close()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
