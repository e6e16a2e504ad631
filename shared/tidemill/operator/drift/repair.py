"""Sets what differs from a stack's template as the template says. Deletes nothing, and makes no deployment."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from tidemill.aws import clients
from tidemill.aws.clients import AWS_ERRORS, POOL_SIZE
from tidemill.domain.errors import TidemillError
from tidemill.operator.comparisons.catalogue import comparisons
from tidemill.operator.comparisons.tables import STREAM
from tidemill.operator.deployments.deployment import Deployment
from tidemill.operator.drift import expected_state, resource_states
from tidemill.operator.drift.expected_resource import Expected, LatestStream
from tidemill.operator.drift.resource_states import ResourceState


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """One changing call."""

    expected: Expected
    settings: Sequence[str]
    #: Why AWS refused it.
    error: Exception | None = None


def compare(deployment: Deployment) -> list[ResourceState]:
    """Every resource beside its expected state. Raises what reading the template raises."""
    expected = expected_state.read(clients.cloudformation(), deployment.stack, deployment.functions)
    with ThreadPoolExecutor(POOL_SIZE) as pool:
        return list(pool.map(resource_states.reader(expected), expected))


def restore(states: Sequence[ResourceState]) -> Iterator[Restored]:
    """Restore what differs, each resource as it is by then. A call that fails does not stop the others."""
    streams = {state.expected.physical_id for state in states if _lacks_stream(state)}
    for state in states:
        if state.differences or _reads(state.expected, streams):
            yield from _restored(resource_states.reader([state.expected])(state.expected))


def stream_was_off(restored: Sequence[Restored]) -> bool:
    """Changes that no stream has: their messages are missing."""
    return any(each.error is None and STREAM in each.settings for each in restored)


def _restored(state: ResourceState) -> Iterator[Restored]:
    expected, found = state.expected, state.found
    if found is None:
        yield Restored(expected=expected, settings=(), error=state.error or TidemillError("it no longer exists"))
        return
    comparison = comparisons()[expected.kind]
    names = [difference.setting for difference in state.differences]
    for together in comparison.calls(names) if names else ():
        try:
            comparison.restore(expected, found, together)
        except (TidemillError, *AWS_ERRORS) as error:
            yield Restored(expected=expected, settings=together, error=error)
        else:
            yield Restored(expected=expected, settings=together)


def _lacks_stream(state: ResourceState) -> bool:
    return any(difference.setting == STREAM for difference in state.differences)


def _reads(expected: Expected, tables: set[str | None]) -> bool:
    """Whether it is a mapping whose stream is replaced."""
    return any(isinstance(value, LatestStream) and value.table in tables for value in expected.settings.values())
