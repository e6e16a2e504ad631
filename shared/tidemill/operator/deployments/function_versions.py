"""The published versions of each function, the one that calls reach, and the one that the last deployment chose."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from tidemill.aws.clients import translated
from tidemill.domain.errors import TidemillError
from tidemill.names import LIVE_ALIAS, Env
from tidemill.operator.deployments.deployment import FunctionStack

#: Concurrent calls. Lambda allows an account 15 calls a second of this kind, and the SDK retries the others:
#: https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html
_CONCURRENT: Final = 4
_LATEST: Final = "$LATEST"


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """Lambda numbers the versions of a function from 1, and never changes one."""

    number: int
    #: The version of the code, as log lines show it. Empty if the function does not know it.
    code: str
    published_at: datetime
    #: The jobs table of its environment. Empty if it has none.
    table: str = ""
    #: The epoch of that table.
    epoch: int = 0

    def same_jobs(self, other: "Version") -> bool:
        """Whether both act on one jobs table, and on the messages of one epoch."""
        return (self.table, self.epoch) == (other.table, other.epoch)


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionVersions:
    """One function."""

    #: Its key in `names.Output.FUNCTIONS`: `publish`, `work-bulk`.
    key: str
    name: str
    #: The number of the version that the last deployment made the live one.
    deployed: int
    #: The number of the version that calls reach: the alias points to it.
    live: int
    #: Whether the alias sends part of the calls to another version: a gradual deployment goes on.
    shared: bool
    #: The revision of the alias, which changes with each change of it.
    revision: str
    #: By number.
    versions: Mapping[int, Version]


class MissingVersionError(TidemillError):
    """The version that the last deployment chose was deleted."""


def read(client: Any, stacks: Sequence[FunctionStack]) -> list[FunctionVersions]:
    """Two calls for each function, and more for one with over 50 versions. `client` is that of Lambda.

    Raises `MissingVersionError`, and what the AWS calls raise.
    """
    named = [
        (key, name, int(stack.versions[key]))
        for stack in stacks
        for key, name in stack.functions.items()
        if key in stack.versions
    ]
    with ThreadPoolExecutor(_CONCURRENT) as pool:
        return list(pool.map(lambda each: _read(client, *each), named))


def surplus(function: FunctionVersions, *, keep: int) -> list[Version]:
    """The versions older than the deployed one, without the `keep` newest of them and without the live one."""
    older = sorted(number for number in function.versions if number < function.deployed)
    return [function.versions[number] for number in older[: max(len(older) - keep, 0)] if number != function.live]


def delete(client: Any, name: str, number: int) -> None:
    """Lambda refuses to delete a version that an alias points to.

    https://docs.aws.amazon.com/lambda/latest/api/API_DeleteFunction.html
    """
    with translated():
        client.delete_function(FunctionName=name, Qualifier=str(number))


def live(client: Any, name: str) -> tuple[int, str]:
    """The number of the live version, and the version of its code.

    Not `GetAlias`, because Lambda allows 100 calls of `GetFunction` a second, and 15 of all others together.
    """
    with translated():
        configuration = client.get_function(FunctionName=name, Qualifier=LIVE_ALIAS)["Configuration"]
    return int(configuration["Version"]), _code(configuration)


def _read(client: Any, key: str, name: str, deployed: int) -> FunctionVersions:
    with translated():
        alias = client.get_alias(FunctionName=name, Name=LIVE_ALIAS)
        pages = client.get_paginator("list_versions_by_function").paginate(FunctionName=name)
        versions = [_version(each) for page in pages for each in page["Versions"] if each["Version"] != _LATEST]
    if deployed not in {version.number for version in versions}:
        raise MissingVersionError(f"the deployed version {deployed} of {name} was deleted: deploy again")
    return FunctionVersions(
        key=key,
        name=name,
        deployed=deployed,
        live=int(alias["FunctionVersion"]),
        shared=bool(alias.get("RoutingConfig", {}).get("AdditionalVersionWeights")),
        revision=alias["RevisionId"],
        versions={version.number: version for version in versions},
    )


def _version(configuration: Mapping[str, Any]) -> Version:
    variables = _variables(configuration)
    return Version(
        number=int(configuration["Version"]),
        code=_code(configuration),
        published_at=datetime.fromisoformat(configuration["LastModified"]),
        table=variables.get(Env.JOBS_TABLE, ""),
        epoch=int(variables.get(Env.EPOCH) or 0),
    )


def _code(configuration: Mapping[str, Any]) -> str:
    return _variables(configuration).get(Env.CODE_VERSION, "")


def _variables(configuration: Mapping[str, Any]) -> Mapping[str, str]:
    found: Mapping[str, str] = configuration.get("Environment", {}).get("Variables", {})
    return found
