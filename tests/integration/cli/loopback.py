"""A server on 127.0.0.1 for CloudFormation's reads and, below it, an HTTP API, like the embedded AWS."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import dataclass, field
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import StringIO
from typing import Any, Final
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

from tests.support import api_gateway
from tests.support.http_events import ROLE
from tests.support.job_tables import REGION
from tests.support.patience import PATIENCE_SECONDS

#: The account of moto.
ACCOUNT: Final = "123456789012"
#: Where the embedded AWS serves the API whose id the stack of `conftest.pipeline` names.
_BASE: Final = "/_aws/execute-api/a1b2/$default"


@dataclass(frozen=True)
class Stack:
    """The description of a deployed stack."""

    name: str
    outputs: Mapping[str, str]
    tags: Mapping[str, str] = field(default_factory=lambda: {"tidemill:app": "tidemill", "tidemill:stage": "dev"})
    template: Mapping[str, Any] = field(default_factory=dict)
    #: Logical id to physical id.
    resources: Mapping[str, str] = field(default_factory=dict)
    status: str = "CREATE_COMPLETE"


@dataclass(frozen=True)
class Request:
    """A request to the API."""

    method: str
    path: str
    headers: Message
    body: bytes


#: Status, headers, body.
Answer = tuple[int, Mapping[str, str], bytes]


@dataclass
class Loopback:
    """The responses of the server, and the requests that it received."""

    url: str
    stacks: list[Stack] = field(default_factory=list)
    #: The response of the API.
    answer: Answer = (200, {}, b"{}")
    #: Computes the response of the API, and takes precedence over `answer`.
    respond: Callable[[Request], Answer] | None = None
    requests: list[Request] = field(default_factory=list)
    #: If set, CloudFormation's error response: status, code, message.
    error: tuple[int, str, str] | None = None
    #: Set when the API receives a request; the response waits for `release`.
    arrived: threading.Event = field(default_factory=threading.Event)
    release: threading.Event = field(default_factory=threading.Event)

    def answers(self, status: int, document: Any, **headers: str) -> None:
        self.answer = (status, headers, json.dumps(document).encode())

    def cloudformation(self, action: str, name: str | None) -> tuple[int, str]:
        if self.error:
            status, code, message = self.error
            return status, _failure(code, message)
        found = [stack for stack in self.stacks if name in {None, stack.name}]
        if name and not found:
            return 400, _failure("ValidationError", f"Stack with id {name} does not exist")
        result = _RESULTS[action](found)
        return 200, (
            f'<{action}Response xmlns="http://cloudformation.amazonaws.com/doc/2010-05-15/">'
            f"<{action}Result>{result}</{action}Result></{action}Response>"
        )


def _member(stack: Stack) -> str:
    outputs = "".join(
        f"<member><OutputKey>{escape(key)}</OutputKey><OutputValue>{escape(value)}</OutputValue></member>"
        for key, value in stack.outputs.items()
    )
    tags = "".join(
        f"<member><Key>{escape(key)}</Key><Value>{escape(value)}</Value></member>" for key, value in stack.tags.items()
    )
    return (
        f"<member><StackId>arn:aws:cloudformation:{REGION}:{ACCOUNT}:stack/{escape(stack.name)}/guid</StackId>"
        f"<StackName>{escape(stack.name)}</StackName><StackStatus>{stack.status}</StackStatus>"
        f"<Outputs>{outputs}</Outputs><Tags>{tags}</Tags></member>"
    )


def _stacks(stacks: Sequence[Stack]) -> str:
    return f"<Stacks>{''.join(map(_member, stacks))}</Stacks>"


def _template(stacks: Sequence[Stack]) -> str:
    return f"<TemplateBody>{escape(json.dumps(stacks[0].template))}</TemplateBody>"


def _resources(stacks: Sequence[Stack]) -> str:
    members = "".join(
        f"<member><LogicalResourceId>{logical}</LogicalResourceId>"
        f"<PhysicalResourceId>{physical}</PhysicalResourceId></member>"
        for logical, physical in stacks[0].resources.items()
    )
    return f"<StackResourceSummaries>{members}</StackResourceSummaries>"


_RESULTS: Final = {"DescribeStacks": _stacks, "GetTemplate": _template, "ListStackResources": _resources}


def _failure(code: str, message: str) -> str:
    return f"<ErrorResponse><Error><Code>{code}</Code><Message>{escape(message)}</Message></Error></ErrorResponse>"


def from_the_functions(request: Request) -> Answer:
    """A `Loopback.respond`: the response of the API's own functions to `ROLE`."""
    url = urlsplit(request.path.removeprefix(_BASE))
    # The functions print metrics, and the test reads the output of the command line.
    with redirect_stdout(StringIO()):
        status, headers, text = api_gateway.respond(
            request.method,
            unquote(url.path),
            query=url.query,
            headers=dict(request.headers.items()),
            body=request.body or None,
            iam=ROLE,
        )
    return status, headers, text.encode()


@contextmanager
def loopback() -> Iterator[Loopback]:
    """Serve on a free port while the block runs."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if self.path == "/":
                parameters = parse_qs(body.decode())
                status, text = serving.cloudformation(parameters["Action"][0], parameters.get("StackName", [None])[0])
                self._send(status, {"Content-Type": "text/xml"}, text.encode())
                return
            request = Request(self.command, self.path, self.headers, body)
            serving.requests.append(request)
            serving.arrived.set()
            serving.release.wait(PATIENCE_SECONDS)
            self._send(*(serving.respond(request) if serving.respond else serving.answer))

        do_POST = do_GET  # noqa: N815 - the name that the base class requires

        def _send(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
            with suppress(ConnectionError):  # the client may have closed the connection
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name.replace("_", "-"), value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        serving = Loopback(f"http://127.0.0.1:{server.server_port}")
        serving.release.set()
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield serving
        finally:
            serving.release.set()
            server.shutdown()
            thread.join()
