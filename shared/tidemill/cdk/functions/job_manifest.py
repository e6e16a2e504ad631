"""`JobManifest`: the job types and sources of an asset, for the templates.

A separate process imports the job files as a worker does and writes the manifest, so a stack has what its workers have.
A broken file stops the synth: after a deployment, it would stop its types. May not import CDK.
"""

import json
import os
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tidemill.cdk.config import HOST_PYTHON
from tidemill.cdk.lanes.lane_config import LaneConfig
from tidemill.cdk.synth_errors import SynthError

SCRIPT: Final = Path(__file__).parent / "import_job_files.py"
#: Its name in the asset.
FILE: Final = "tidemill-manifest.json"
#: Each function has a region: https://docs.aws.amazon.com/lambda/latest/dg/configuration-envvars.html
#: Without the others, boto3 would find the credentials of the machine:
#: https://docs.aws.amazon.com/sdkref/latest/guide/feature-imds-credentials.html
_ENVIRONMENT: Final = {
    "AWS_REGION": "us-east-1",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    "AWS_EC2_METADATA_DISABLED": "true",
}
_REMEDY: Final = (
    "; a function can import boto3 and the packages in functions/requirements.txt: "
    "add the package to the group `functions` in pyproject.toml, then run `make lock`"
)


class JobFileError(SynthError):
    """The functions would fail to load the job types."""


class SourceError(SynthError):
    """A source that no function of the code can serve."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredType:
    """`schedule` is None for a type that is not periodic, and `at` is the file and line."""

    name: str
    lane: str
    timeout_seconds: float | None
    schedule: str | None
    grouped: bool
    at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredSource:
    """`record` is the name of the class that its function takes."""

    name: str
    record: str
    at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JobManifest:
    """Both are sorted by name."""

    types: Sequence[DeclaredType]
    sources: Sequence[DeclaredSource]

    @property
    def schedules(self) -> Mapping[str, str]:
        """The expression of each periodic type."""
        return {each.name: each.schedule for each in self.types if each.schedule}

    def require_lane_time(self, lanes: Iterable[LaneConfig]) -> None:
        """Raises `JobFileError` for a type that allows its runs more time than its lane does."""
        lane_seconds = {str(lane.name): lane.job_timeout_seconds for lane in lanes}
        for each in self.types:
            most = lane_seconds.get(each.lane)
            if each.timeout_seconds and most and each.timeout_seconds > most:
                raise JobFileError(
                    f"{each.at}: timeout_seconds of {each.name!r} is {each.timeout_seconds:g}, and lane {each.lane} "
                    f"allows {most:g}: lower it, name a less urgent lane, or raise job_timeout_seconds of the lane"
                )

    def require_source(self, name: str, record: str) -> None:
        """Raises `SourceError` if no function is the source of that name, or it takes another record."""
        source = next((each for each in self.sources if each.name == name), None)
        if source is None:
            known = ", ".join(each.name for each in self.sources) or "none"
            raise SourceError(f"no function is @event_source({name!r}, …); known sources: {known}")
        if source.record != record:
            raise SourceError(
                f"{source.at}: source {name!r} takes {source.record}, and its construct delivers {record}"
            )


def write(packages: Sequence[str], *, path: Sequence[Path], into: Path) -> None:
    """Import all modules of `packages` as a function with its code in `path` does. Raises `JobFileError`.

    The environment has no variable of the app, because a handler must read it when it runs, not when it is imported.
    Credentials are out of reach, and the script refuses the network.
    """
    arguments = [sysconfig.get_path("purelib"), ",".join(packages), str(into / FILE), *map(str, path)]
    done = subprocess.run(  # noqa: S603 - this Python, by its path
        # Isolated, without site-packages, and without writing bytecode.
        [sys.executable, "-I", "-S", "-B", str(SCRIPT), *arguments],
        env=_ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode or not (into / FILE).is_file():
        error = (done.stderr.strip() or f"exit code {done.returncode}").splitlines()[-1]
        remedy = _REMEDY if "ModuleNotFoundError" in error else ""
        raise JobFileError(f"Python {HOST_PYTHON} cannot load the job types: {error}{remedy}")


def read(asset: str) -> JobManifest:
    """The manifest of a folder that `asset.build` returned. Raises `SynthError` for another folder."""
    try:
        written = json.loads((Path(asset) / FILE).read_text(encoding="utf-8"))
    except OSError as error:
        raise SynthError(
            f"the asset {asset} has no {FILE}: build it with tidemill.cdk.functions.asset.build"
        ) from error
    return JobManifest(
        types=[DeclaredType(**each) for each in written["types"]],
        sources=[DeclaredSource(**each) for each in written["sources"]],
    )
