"""The settings with which a deployment puts a recovered table into use. `tidemill recover` prints them."""

import shlex
from collections.abc import Iterable, Mapping
from typing import Any

from tidemill.operator.deployment import Deployment


def restore_settings(deployment: Deployment, *, jobs_stream: str | None, epoch: int) -> Mapping[str, Any]:
    """By the name of the setting. Without a stage a deployment is one of `dev`, whichever stage was restored."""
    stage, _, installation = deployment.stage.partition("-")
    return {
        "stage": stage,
        **({"installation": installation} if installation else {}),
        # The pauses of a restore set off the alarms that would end a gradual deployment.
        "gradual_deployment": "off",
        "jobs_stream": jobs_stream,
        "epoch": epoch,
    }


def deploy_commands(settings: Mapping[str, Any], further_stacks: Iterable[str]) -> list[str]:
    """The further stacks of the stage go first: CloudFormation removes no export of the jobs table that they import."""
    options = " ".join(f"-c {shlex.quote(f'{name}={value}')}" for name, value in settings.items())
    first = " ".join(sorted(further_stacks))
    return [
        *([f"npx cdk deploy --exclusively {first} {options}"] if first else []),
        f"npx cdk deploy --all {options}",
    ]
