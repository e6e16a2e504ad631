"""Work: takes a batch of messages of a lane, and returns the messages that must stay on it."""

import os
import time
from collections.abc import Mapping
from datetime import timedelta
from functools import cache
from typing import TYPE_CHECKING, Any

from tidemill.application.admission.foreground import Foreground
from tidemill.application.attempt.attempt_context import AttemptContext, no_parents
from tidemill.application.features.attempt_features import gates_of
from tidemill.application.job_types import measured
from tidemill.aws import clients
from tidemill.composition import parts
from tidemill.domain.job import Job
from tidemill.names import Env, Lane
from tidemill.settings import setting
from tidemill.system import clock, ids, own_process, random_draw
from tidemill.system.process_state import ProcessState
from tidemill.telemetry import handler_output
from tidemill.telemetry.outcome_log import grouped_commit_failed
from tidemill.telemetry.tracing import tracing
from tidemill.worker.lane_messages import LaneMessages
from tidemill.worker.lane_worker import Worker
from tidemill.worker.message_run import Invocation, WorkerSettings

if TYPE_CHECKING:
    from tidemill.dynamodb.attempt.grouped_writes import DynamoGroupedWrites


def handle(event: Mapping[str, Any], context: Invocation) -> Mapping[str, Any]:
    with tracing().invocation("work", context):
        return worker().work(event, context)


def _foreground(lane: Lane) -> Foreground | None:
    if lane is not Lane.CRITICAL:
        return None
    governor = parts().governor
    if governor is None:
        return None
    target = timedelta(seconds=float(setting(Env.FOREGROUND_TARGET)))
    return Foreground(governor, target=target, clock=clock.now)


def _parents_of(job: Job) -> Mapping[str, Any]:
    if job.flow is None:
        return no_parents(job)
    from tidemill.application.flows.flow_parents import ParentResults  # noqa: PLC0415 - few jobs are nodes

    return ParentResults(job, parts().flow_items, parts().flow_graphs)


def _grouped_writes() -> "DynamoGroupedWrites | None":
    known = parts().job_types
    if not any(known.get(name).grouped for name in known.names()):
        return None
    from tidemill.dynamodb.attempt.grouped_writes import DynamoGroupedWrites  # noqa: PLC0415 - few workers need it

    return DynamoGroupedWrites(
        parts().client,
        table=parts().table,
        retention=parts().retention,
        indexes=parts().indexes,
        failed=grouped_commit_failed,
    )


def _measured_types() -> frozenset[str] | None:
    """The job types that have metrics of their own. None where no type has any."""
    most = int(os.environ.get(Env.METRICS_BY_TYPE) or 0)
    return frozenset(measured(parts().job_types.names(), most)) if most else None


@cache
def worker() -> Worker:
    """A worker knows only its own lane."""
    # Before the job types are imported.
    handler_output.install()
    ((lane, urls),) = parts().lane_urls.items()
    settings = WorkerSettings(
        context=AttemptContext(
            gates=gates_of,
            store=parts().store,
            payloads=parts().payloads,
            limits=parts().limits,
            job_types=parts().job_types,
            submit=parts().submit,
            clock=clock.now,
            steady_clock=clock.steady,
            new_token=ids.new_token,
            draw=random_draw.draw,
            pause=time.sleep,
            configuration=parts().configuration.current,
            breakers=parts().breakers,
            superseder=lambda: parts().superseder,
            parents_of=_parents_of,
            governor=parts().governor,
            foreground=_foreground(lane),
            settle_jointly=parts().store.settle_jointly,
        ),
        lane=lane,
        job_timeout=timedelta(seconds=float(setting(Env.JOB_TIMEOUT_SECONDS))),
        follows_groups=os.environ.get(Env.FOLLOW_GROUPS) != "false",
        first_messages=parts().first_messages,
        version=os.environ.get(Env.CODE_VERSION, ""),
        epoch=parts().epoch,
        grouped_writes=_grouped_writes(),
    )
    lane_messages = LaneMessages(clients.sqs, urls.queue, clock=clock.now)
    return Worker(
        settings=settings,
        messages=lane_messages,
        end_process=_end_process,
        process_state=ProcessState(handler_output.streams_intact),
        new_telemetry=parts().telemetry,
        measured_types=_measured_types(),
    )


def _end_process() -> None:
    """Nothing runs after it, so spans are exported here."""
    tracing().flush(longest_seconds=1.0)
    own_process.end()
