"""The part of the composition root that only the sources of events need, so that other functions need not import it."""

from tidemill import composition
from tidemill.application.event_types import EventSource
from tidemill.aws import clients
from tidemill.domain.errors import MissingResourceError, UnloadedJobTypeError
from tidemill.names import Env
from tidemill.settings import setting
from tidemill.sources.intake import Intake
from tidemill.sqs.source_queue import SourceQueue
from tidemill.telemetry.outcome_log import Telemetry, record_not_published


def intake(telemetry: Telemetry) -> Intake:
    """For one invocation. Raises an error if this code lacks the source: then all comes again."""
    source = _source(setting(Env.SOURCE))
    queue = SourceQueue(clients.sqs(), queue=setting(Env.SOURCE_QUEUE), dead_letters=setting(Env.SOURCE_DEAD_LETTERS))
    return Intake(
        source,
        composition.submit(),
        tenant=setting(Env.SOURCE_TENANT),
        forward=queue.forward,
        accepted=telemetry.accepted,
        changed=lambda record, error: telemetry.record_changed(source.name, record, error),
        failed=lambda record, error: record_not_published(source.name, record, error),
    )


def _source(name: str) -> EventSource:
    known = composition.known_job_types()
    if found := known.sources.get(name):
        return found
    for fault in known.faults:
        raise UnloadedJobTypeError(f"source {name}", tuple(known.sources), str(fault))
    raise MissingResourceError(f"this code has no event_source {name!r}; deploy the stack and its code together")
