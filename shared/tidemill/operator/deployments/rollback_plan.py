"""Which version each function gets in a rollback, and in which order. Pure.

A deployment of new code publishes a version of every function, since all share one asset. A deployment of a setting
publishes versions of some functions only, and a rollback of it moves only these.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from tidemill.application.operations.audit import AuditEntry, Outcome
from tidemill.operator.deployments.function_versions import FunctionVersions, Version

#: The name of the command in the audit log.
COMMAND: Final = "rollback"
#: A deployment of a setting publishes its versions within this time.
_ONE_DEPLOYMENT: Final = timedelta(minutes=10)
#: The verbs of the engine in the order of a rollback; functions of the app come first. Any order is safe, since two
#: versions of the code run side by side in every deployment: an older worker leaves a newer document alone and puts its
#: message back. This order keeps such documents few: first the functions that accept jobs, then those that dispatch
#: them, and last the workers. Going forward takes the reverse order.
_ORDER: Final = ("submit", "tick", "canary", "control", "query", "publish", "wake", "reconcile", "work")
#: When a rollback left the version of the function with this key and number.
Withdrawn = Mapping[tuple[str, int], datetime]


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """Point the alias of `function` to the version `to`."""

    function: FunctionVersions
    to: Version

    @property
    def needed(self) -> bool:
        return self.function.shared or self.function.live != self.to.number

    @property
    def across_restore(self) -> bool:
        """Whether the version has another jobs table than the deployed one, or messages of another epoch."""
        return not self.to.same_jobs(_deployed(self.function))

    def __str__(self) -> str:
        """For the audit log: the key of the function, and the numbers of the versions."""
        return f"{self.function.key}:{self.function.live}:{self.to.number}"


def before_last_deployment(functions: Iterable[FunctionVersions], withdrawn: Withdrawn) -> list[Move]:
    """The functions that the last deployment of any function changed, each to the version before."""
    changes = [(function, old, _deployed(function)) for function, old in _changed(functions, withdrawn)]
    if not changes:
        return []
    _, old, newest = max(changes, key=lambda change: change[2].published_at)
    new_code = old.code != newest.code
    return _ordered(
        Move(function=function, to=previous)
        for function, previous, deployed in changes
        if deployed.code == newest.code
        and (previous.code != deployed.code) == new_code
        and (new_code or newest.published_at - deployed.published_at <= _ONE_DEPLOYMENT)
    )


def before_own_deployment(functions: Iterable[FunctionVersions], withdrawn: Withdrawn) -> list[Move]:
    """Each to the version before its deployed one."""
    return _ordered(Move(function=function, to=previous) for function, previous in _changed(functions, withdrawn))


def to_code(functions: Iterable[FunctionVersions], code: str) -> list[Move]:
    """Each to its newest version of this code. A function without one is left out."""
    newest = [
        (function, max(found))
        for function in functions
        if (found := [number for number, version in function.versions.items() if version.code == code])
    ]
    return _ordered(Move(function=function, to=function.versions[number]) for function, number in newest)


def forward(functions: Iterable[FunctionVersions]) -> list[Move]:
    """Each to its deployed version, which the end of a rollback brings back."""
    return _ordered(Move(function=function, to=_deployed(function)) for function in functions)[::-1]


def withdrawn(entries: Iterable[AuditEntry]) -> Withdrawn:
    """The versions that rollbacks left and no later command chose again. No rollback returns to one of them."""
    found: dict[tuple[str, int], datetime] = {}
    rollbacks = [each for each in entries if each.command == COMMAND and each.outcome in {Outcome.DONE, None}]
    for entry in sorted(rollbacks, key=lambda entry: entry.began_at):
        for move in entry.options.get("moves", ()):
            key, left, chosen = str(move).split(":")
            if int(chosen) < int(left):
                found[key, int(left)] = entry.began_at
            found.pop((key, int(chosen)), None)
    return found


def _changed(functions: Iterable[FunctionVersions], withdrawn: Withdrawn) -> Iterable[tuple[FunctionVersions, Version]]:
    """Each function with the version before its deployed one. A new function has none, and is left out."""
    for function in functions:
        older = [
            version
            for number, version in function.versions.items()
            if number < function.deployed
            # A function that was created anew counts from 1 again, so an older command left another version.
            and withdrawn.get((function.key, number), version.published_at) <= version.published_at
        ]
        if older:
            yield function, max(older, key=lambda version: version.number)


def _deployed(function: FunctionVersions) -> Version:
    return function.versions[function.deployed]


def _ordered(moves: Iterable[Move]) -> list[Move]:
    def place(move: Move) -> tuple[int, str]:
        verb = move.function.key.partition("-")[0]
        return (_ORDER.index(verb) if verb in _ORDER else -1, move.function.key)

    return sorted(moves, key=place)
