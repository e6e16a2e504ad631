"""What differs between a deployed stack and its template. Reconcile asks, for the alarm on drift."""

from collections.abc import Mapping

from tidemill.aws import clients
from tidemill.aws.clients import AWS_ERRORS
from tidemill.domain.errors import StoreUnavailableError, TidemillError
from tidemill.operator.drift import expected_state, resource_states
from tidemill.operator.drift.resource_states import ResourceState


def drifted(stack: str) -> Mapping[str, str]:
    """By resource: how it differs, or why it could not be compared. Never raises an error of AWS."""
    found: dict[str, str] = {}
    try:
        expected = expected_state.read(clients.cloudformation(), stack, {})
        read = resource_states.reader(expected)
        for one in expected:
            state = read(one)
            if isinstance(state.error, StoreUnavailableError):
                # The calls for the others would wait as long.
                raise state.error
            if not state.as_expected:
                found[f"{one.kind} {one.logical_id}"] = _difference(state)
    except (TidemillError, *AWS_ERRORS) as error:
        found[f"stack {stack}"] = _not_compared(error)
    return found


def _difference(state: ResourceState) -> str:
    if state.error:
        return _not_compared(state.error)
    return "; ".join(map(str, state.differences)) or f"its state is {state.state}"


def _not_compared(error: Exception) -> str:
    return f"not compared: {error}"
