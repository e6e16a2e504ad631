"""Deploys the app to an emulator with the real CDK command line: synth and bootstrap in parallel, then deploy."""

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rich.console import Console

from tidemill.local import environment
from tidemill.local.environment import ACCOUNT, REGION, Keys
from tidemill.local.paths import CDK, ROOT, node_folder, require_set_up

STAGE: Final = "local"
QUIET: Final = ("--no-notices", "--no-version-reporting", "--no-color")
TAIL_LINES: Final = 20
#: The prefix of an error message of `app.py`, and the line that the CDK command line adds.
EXPLAINED: Final = "tidemill: "
SUBPROCESS_FAILED: Final = "Subprocess exited"

#: How CDK names the outputs by which one stack refers to another.
CROSS_STACK: Final = "ExportsOutput"


class DeployError(Exception):
    """A step failed. The text names the step and shows the end of its output."""


@dataclass(frozen=True)
class Step:
    """A run of the CDK command line."""

    text: str
    process: subprocess.Popen[bytes]
    log: Path
    started_at: float

    def finish(self, console: Console) -> None:
        """Wait for the step, and print its duration. Raises DeployError if it failed."""
        with console.status(self.text):
            code = self.process.wait()
        if code:
            lines = _lines(self.log)
            if explained := _reason_of_the_app(lines):
                raise DeployError(f"{self.text}: {explained}")
            tail = "\n".join(f"  | {line}" for line in lines[-TAIL_LINES:])
            raise DeployError(f"{self.text}: the CDK command line ended with code {code}\n{tail}\nin {self.log}")
        console.print(f"  {self.text}: {time.monotonic() - self.started_at:.1f} s", highlight=False)


def deploy(
    folder: Path, endpoint: str, keys: Keys, console: Console, *, context: Sequence[str] = ()
) -> Mapping[str, str]:
    """Deploy, and return the outputs of the stacks. `outputs.json` keeps them too. Raises DeployError.

    `context` holds settings as `name=value`.
    """
    assembly, by_stack = folder / "cdk.out", folder / "outputs-by-stack.json"
    to_emulator = environment.for_aws(endpoint, keys)
    synth_arguments = ("synth", "--quiet", "--output", str(assembly), *_settings(STAGE, context))
    bootstrap_arguments = ("bootstrap", f"aws://{ACCOUNT}/{REGION}")
    deploy_arguments = ("deploy", "--all", "--app", str(assembly), "--require-approval", "never", "--concurrency", "2")
    with (
        # Bootstrap in another folder: in that of the project, it would synthesise the app.
        _cdk("bootstrapping", bootstrap_arguments, to_emulator, log=folder / "bootstrap.log", cwd=folder) as bootstrap,
        _cdk("synthesising", synth_arguments, environment.for_synth(), log=folder / "synth.log", cwd=ROOT) as synth,
    ):
        bootstrap.finish(console)
        synth.finish(console)
    arguments = (*deploy_arguments, "--outputs-file", str(by_stack))
    with _cdk("deploying", arguments, to_emulator, log=folder / "deploy.log", cwd=folder) as deployment:
        deployment.finish(console)
    outputs = merged(json.loads(by_stack.read_text()))
    (folder / "outputs.json").write_text(json.dumps(outputs, indent=2))
    return outputs


def synth(stage: str, output: Path, console: Console, *, context: Sequence[str] = (), log: Path | None = None) -> None:
    """Write the templates of `stage` without account, credentials or emulator. Raises DeployError and NotSetUpError.

    `context` holds settings as `name=value`. Two syntheses that may run at the same time need different logs.
    """
    require_set_up()
    arguments = ("synth", "--quiet", "--output", str(output), *_settings(stage, context))
    output.parent.mkdir(exist_ok=True)
    log = log or environment.home() / "synth.log"
    with _cdk(f"synthesising stage {stage}", arguments, environment.for_synth(), log=log, cwd=ROOT) as step:
        step.finish(console)


def _settings(stage: str, context: Sequence[str]) -> list[str]:
    return [word for setting in (f"stage={stage}", *context) for word in ("--context", setting)]


def merged(by_stack: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """The outputs of all stacks. If several stacks have the same output, each is a JSON object; these are merged."""
    outputs: dict[str, str] = {}
    for stack in by_stack.values():
        for name, value in stack.items():
            if not name.startswith(CROSS_STACK):
                both = name in outputs
                outputs[name] = json.dumps(json.loads(outputs[name]) | json.loads(value)) if both else value
    return outputs


@contextlib.contextmanager
def _cdk(text: str, arguments: Sequence[str], env: Mapping[str, str], *, log: Path, cwd: Path) -> Iterator[Step]:
    """Run the CDK command line during the block. However the block ends, its process group ends too."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            [str(node_folder() / "bin" / "node"), str(CDK), *arguments, *QUIET],
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        yield Step(text, process, log, time.monotonic())
    finally:
        if process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _reason_of_the_app(lines: Sequence[str]) -> str:
    """The app's own reason for its failure, or an empty text: the line before the last one, which the CDK adds."""
    last = lines[-2] if len(lines) > 1 and SUBPROCESS_FAILED in lines[-1] else ""
    return last.removeprefix(EXPLAINED) if last.startswith(EXPLAINED) else ""


def _lines(log: Path) -> list[str]:
    return [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
