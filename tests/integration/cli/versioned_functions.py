"""Stands in for the client of Lambda: functions with versions and an alias."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from botocore.exceptions import ClientError, ConnectionClosedError

from tidemill.names import Env

DEPLOYED_AT: Final = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass
class VersionedFunctions:
    """Each function by its name: the codes of its versions 1, 2, …, and the number that its alias points to."""

    codes: dict[str, list[str]]
    live: dict[str, int] = field(default_factory=dict)
    #: By name: the version to which the alias also sends calls.
    weights: dict[str, Mapping[str, float]] = field(default_factory=dict)
    revisions: Counter[str] = field(default_factory=Counter)
    #: How often each operation was called.
    calls: Counter[str] = field(default_factory=Counter)
    #: The names of the functions whose alias was changed, in order.
    moved: list[str] = field(default_factory=list)
    #: The functions whose alias cannot be changed.
    refusing: set[str] = field(default_factory=set)
    #: The functions for which the next answer to a change is lost, though the change takes place.
    losing: set[str] = field(default_factory=set)
    #: The numbers of the deleted versions of each function.
    deleted: dict[str, list[int]] = field(default_factory=dict)
    #: More variables of the environment, by name and number.
    variables: dict[tuple[str, int], Mapping[str, str]] = field(default_factory=dict)
    #: When each version of a function was published, by name; otherwise one day after the other.
    published: dict[str, Sequence[datetime]] = field(default_factory=dict)

    def get_alias(self, *, FunctionName: str, Name: str) -> Mapping[str, Any]:  # noqa: N803 - the names of the API
        assert Name == "live"
        self.calls["GetAlias"] += 1
        alias = {"FunctionVersion": str(self._live(FunctionName)), "RevisionId": str(self.revisions[FunctionName])}
        weights = self.weights.get(FunctionName)
        return alias | ({"RoutingConfig": {"AdditionalVersionWeights": weights}} if weights else {})

    def get_function(self, *, FunctionName: str, Qualifier: str) -> Mapping[str, Any]:  # noqa: N803
        assert Qualifier == "live"
        return {"Configuration": self._configuration(FunctionName, self._live(FunctionName))}

    def get_paginator(self, operation: str) -> "VersionedFunctions":
        assert operation == "list_versions_by_function"
        return self

    def paginate(self, *, FunctionName: str) -> Iterator[Mapping[str, Any]]:  # noqa: N803
        """Two versions a page."""
        all_versions = [{"Version": "$LATEST", "LastModified": ""}] + [
            self._configuration(FunctionName, number)
            for number in range(1, len(self.codes[FunctionName]) + 1)
            if number not in self.deleted.get(FunctionName, [])
        ]
        for start in range(0, len(all_versions), 2):
            self.calls["ListVersionsByFunction"] += 1
            yield {"Versions": all_versions[start : start + 2]}

    def update_alias(
        self,
        *,
        FunctionName: str,  # noqa: N803
        Name: str,  # noqa: N803
        FunctionVersion: str,  # noqa: N803
        RevisionId: str,  # noqa: N803
        RoutingConfig: Mapping[str, Any],  # noqa: N803
    ) -> None:
        assert Name == "live"
        self.calls["UpdateAlias"] += 1
        if FunctionName in self.refusing:
            raise ClientError({"Error": {"Code": "AccessDeniedException", "Message": "no"}}, "UpdateAlias")
        if RevisionId != str(self.revisions[FunctionName]):
            raise ClientError({"Error": {"Code": "PreconditionFailedException", "Message": "old"}}, "UpdateAlias")
        self.live[FunctionName] = int(FunctionVersion)
        self.weights[FunctionName] = RoutingConfig["AdditionalVersionWeights"]
        self.revisions[FunctionName] += 1
        self.moved.append(FunctionName)
        if FunctionName in self.losing:
            self.losing.remove(FunctionName)
            raise ConnectionClosedError(endpoint_url="https://lambda")

    def delete_function(self, *, FunctionName: str, Qualifier: str) -> None:  # noqa: N803
        assert int(Qualifier) != self._live(FunctionName)
        self.deleted.setdefault(FunctionName, []).append(int(Qualifier))

    def _live(self, name: str) -> int:
        return self.live.get(name, len(self.codes[name]))

    def _configuration(self, name: str, number: int) -> dict[str, Any]:
        published = self.published.get(name) or [
            DEPLOYED_AT + timedelta(days=day) for day in range(len(self.codes[name]))
        ]
        return {
            "Version": str(number),
            "LastModified": published[number - 1].strftime("%Y-%m-%dT%H:%M:%S.000+0000"),
            "Environment": {
                "Variables": {Env.CODE_VERSION: self.codes[name][number - 1], **self.variables.get((name, number), {})}
            },
        }
