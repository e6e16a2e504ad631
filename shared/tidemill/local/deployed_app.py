"""The deployed app from outside: every action that a demo, a test or a developer needs."""

import contextlib
import functools
import json
import os
import shlex
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tidemill.local import environment, processes
from tidemill.local.environment import ACCOUNT, Keys
from tidemill.local.launcher import BUSY
from tidemill.local.paths import VENV
from tidemill.local.signed_caller import Answer, Caller
from tidemill.local.wait import wait_until
from tidemill.names import LIVE_ALIAS, Output

#: The name of the role that sends a call by default.
DEFAULT_CALLER: Final = "demo"
SESSION_SECONDS: Final = 12 * 3600
KILL_PATIENCE_SECONDS: Final = 10


class CommandError(Exception):
    """The command line failed. The text holds its error output."""


@dataclass(frozen=True)
class App:
    """Threads may share it."""

    folder: Path
    endpoint: str
    outputs: Mapping[str, str]

    @functools.cached_property
    def root(self) -> Caller:
        """A caller that may do everything. Tests use it to read tables and queues."""
        return Caller(self.endpoint, environment.root_keys(self.folder.name))

    @functools.cached_property
    def caller(self) -> Caller:
        """A session of an ordinary role. It signs requests, and the command line runs with it."""
        return self.assume(DEFAULT_CALLER)

    def assume(self, role: str) -> Caller:
        """A session of another role, and so another tenant. Creates the role if it does not exist.

        The API needs keys of a session: for other keys, the emulator does not report the caller to a function.
        """
        trust = {
            "Version": "2012-10-17",
            "Statement": [{"Effect": "Allow", "Principal": {"AWS": ACCOUNT}, "Action": "sts:AssumeRole"}],
        }
        iam = self.root.client("iam")
        with contextlib.suppress(iam.exceptions.EntityAlreadyExistsException):
            iam.create_role(
                RoleName=role, AssumeRolePolicyDocument=json.dumps(trust), MaxSessionDuration=SESSION_SECONDS
            )
        session = self.root.client("sts").assume_role(
            RoleArn=f"arn:aws:iam::{ACCOUNT}:role/{role}", RoleSessionName="local", DurationSeconds=SESSION_SECONDS
        )["Credentials"]
        keys = Keys(
            access_key=session["AccessKeyId"], secret_key=session["SecretAccessKey"], token=session["SessionToken"]
        )
        return Caller(self.endpoint, keys)

    def client(self, service: str) -> Any:
        """An SDK client that may do everything."""
        return self.root.client(service)

    @property
    def functions(self) -> Mapping[str, str]:
        """The names of the deployed functions by their verbs."""
        return dict(json.loads(self.outputs[Output.FUNCTIONS]))

    def mapping(self, verb: str) -> str:
        """The UUID of the event source mapping of a function: the first one, if a repair added another."""
        lambda_ = self.client("lambda")
        live = lambda_.get_alias(FunctionName=self.functions[verb], Name=LIVE_ALIAS)["AliasArn"]
        # A mapping of an alias is not listed under the name of the function:
        # https://docs.aws.amazon.com/lambda/latest/api/API_ListEventSourceMappings.html
        (mapping, *_) = lambda_.list_event_source_mappings(FunctionName=live)["EventSourceMappings"]
        return str(mapping["UUID"])

    @property
    def api_url(self) -> str:
        return self.url_of(Output.API_ID)

    def url_of(self, api: str) -> str:
        """The URL at which the emulator serves the API whose id is this output. The URL in the outputs needs DNS."""
        return f"{self.endpoint}/_aws/execute-api/{self.outputs[api]}/$default"

    def request(
        self,
        method: str,
        path: str,
        *,
        body: bytes | None = None,
        content_type: str = "application/json",
        key: str | None = None,
        headers: Mapping[str, str] | None = None,
        api: str = Output.API_ID,
        signed: bool = True,
        caller: Caller | None = None,
    ) -> Answer:
        """Send one request to the API whose id is the output `api`. `key` is the Idempotency-Key."""
        sent = dict(headers or {})
        if body is not None:
            sent.setdefault("Content-Type", content_type)
        if key is not None:
            sent.setdefault("Idempotency-Key", key)
        url = self.url_of(api) + path
        return (caller or self.caller).request(method, url, body=body, headers=sent, signed=signed)

    def kill_worker(self, verb: str) -> int:
        """SIGKILL the worker of a function that has run its invocation for longest. Returns its process id.

        Raises WaitError if none runs an invocation within ten seconds.
        """

        def at_work() -> list[tuple[float, int]]:
            since = []
            for pid, folder in processes.workers(self.folder, self.functions[verb]).items():
                with contextlib.suppress(FileNotFoundError):
                    since.append(((folder / BUSY).stat().st_mtime, pid))
            return since

        _, pid = min(wait_until(at_work, KILL_PATIENCE_SECONDS, f"a worker of {verb} to be at work"))
        os.kill(pid, signal.SIGKILL)
        return pid

    def set_function_variable(self, verb: str, name: str, value: str) -> None:
        """Change one variable of a deployed function, as a new deployment might, in a version that is live then."""
        lambda_, function = self.client("lambda"), self.functions[verb]
        variables = lambda_.get_function_configuration(FunctionName=function)["Environment"]["Variables"]
        lambda_.update_function_configuration(
            FunctionName=function, Environment={"Variables": {**variables, name: value}}
        )
        version = lambda_.publish_version(FunctionName=function)["Version"]
        lambda_.update_alias(FunctionName=function, Name=LIVE_ALIAS, FunctionVersion=version)

    def tidemill(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run the command line against the app. Raises CommandError if it fails."""
        done = subprocess.run(
            [str(VENV / "bin" / "tidemill"), *arguments],
            env=self.caller.environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise CommandError(
                f"tidemill {shlex.join(arguments)} ended with code {done.returncode}: {done.stderr.strip()}"
            )
        return done
