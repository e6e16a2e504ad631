"""The status as one JSON object. A part that could not be read is null. Pure."""

from typing import Any

from tidemill.cli.explain.job_report import error_class
from tidemill.cli.formatting import timestamp
from tidemill.cli.operations.status_alarms import as_json as alarms_as_json
from tidemill.cli.operations.status_report import blocked_groups
from tidemill.cli.waiting.held_lines_report import breaker_as_json, lowered_as_json
from tidemill.domain.admission.governor import Governed
from tidemill.domain.operations.overrides import Override
from tidemill.domain.operations.setting import Setting
from tidemill.domain.waiting.pauses import Pause
from tidemill.dynamodb.operations.attention_counts import Counted
from tidemill.dynamodb.passes.job_sample import Sample
from tidemill.operator.deployments.deployment import Deployment
from tidemill.operator.drift.resource_states import ResourceState
from tidemill.operator.status.system_status import AlarmsNow, LaneStatus, SystemStatus, Unread
from tidemill.operator.status.throughput_metrics import WINDOW


def as_json_object(status: SystemStatus, deployment: Deployment) -> dict[str, Any]:
    """docs/reference/cli.md has a table of the members."""
    alarms, dead = status.alarms, status.dead
    newest = None if isinstance(dead, Unread) or isinstance(dead.newest, Unread) else dead.newest
    return {
        "stack": deployment.stack,
        "region": deployment.region,
        "alarms": None if isinstance(alarms, Unread) else alarms_as_json(alarms),
        "burn_rates": _burn_rates(alarms),
        "resources": None
        if isinstance(status.resources, Unread)
        else [_resource(state) for state in status.resources if isinstance(state, ResourceState)],
        "lanes": [_lane(name, lane) for name, lane in status.lanes.items() if isinstance(lane, LaneStatus)],
        "flow": _throughput(status),
        **_counted("scheduled_jobs", status.scheduled),
        **_counted("parked_jobs", None if isinstance(status.parked, Unread) else status.parked.total),
        "pauses": None
        if isinstance(status.pauses, Unread)
        else [_pause(pause, waiting) for pause, waiting in status.pauses],
        "overrides": None
        if isinstance(status.overrides, Unread)
        else [_override(override) for override in status.overrides],
        "strain": _strain(status.strain),
        "governed_strain": _governed(status.governed),
        "breakers": None
        if isinstance(status.breakers, Unread)
        else [breaker_as_json(each) for each in status.breakers],
        "lowered_limits": None
        if isinstance(status.lowered_limits, Unread)
        else [lowered_as_json(each) for each in status.lowered_limits],
        "rolled_back": None
        if isinstance(status.rolled_back, Unread)
        else [
            {"function": each.function, "live": each.live, "deployed": each.deployed, "code": each.code or None}
            for each in status.rolled_back
        ],
        "parked_lines": None
        if isinstance(status.parked, Unread)
        else [
            {"cause": line.cause, "key": line.key, **_counted("jobs", counted)} for line, counted in status.parked.lines
        ],
        **_counted("dead_jobs", None if isinstance(dead, Unread) else dead.counted),
        **_counted("owed_records", status.owed),
        "newest_dead_jobs": None
        if newest is None
        else [
            {"id": job.id, "tenant": job.tenant, "type": job.type, "lane": job.lane, "error": error_class(job)}
            for job in newest
        ],
        "blocked_groups": None if newest is None else len(blocked_groups(newest)),
        "waiting_sample": None if isinstance(status.sample, Unread) else _sample(status.sample),
        "schedules": deployment.schedules,
        "unread": {name: str(part.error) for name, part in status.unread.items()},
    }


def _pause(pause: Pause, waiting: Counted) -> dict[str, Any]:
    return {
        "target": str(pause.target),
        "by": pause.by,
        "since": timestamp(pause.since),
        "until": pause.until and timestamp(pause.until),
        "reason": pause.reason or None,
        "reject_new": pause.reject_new,
        **_counted("waiting", waiting),
    }


def _strain(strain: Setting | Unread | None) -> dict[str, Any] | None:
    if strain is None or isinstance(strain, Unread):
        return None
    return {"level": strain.value, **_record(strain)}


def _governed(governed: Governed | Unread) -> dict[str, Any] | None:
    if isinstance(governed, Unread):
        return None
    return {
        "level": governed.level,
        "since": timestamp(governed.since) if governed.version else None,
        "late": governed.raised_by.late,
        "starts": governed.raised_by.total,
    }


def _override(override: Override) -> dict[str, Any]:
    setting = override.setting
    return {
        "type": override.overridden.type,
        "limit": override.overridden.limit,
        "option": override.overridden.option,
        "value": setting.value,
        **_record(setting),
    }


def _record(setting: Setting) -> dict[str, Any]:
    """Who set it, when and why."""
    return {
        "by": setting.by,
        "since": timestamp(setting.at),
        "until": setting.until and timestamp(setting.until),
        "reason": setting.reason or None,
    }


def _resource(state: ResourceState) -> dict[str, Any]:
    expected = state.expected
    return {
        "kind": expected.kind,
        "name": expected.physical_id,
        "function": expected.function,
        "detail": expected.detail,
        "state": state.state,
        "as_expected": state.as_expected,
        "stopped": state.stopped,
        "differences": [str(difference) for difference in state.differences],
        "remedy": state.remedy,
    }


def _sample(sample: Sample) -> dict[str, Any]:
    # Not `asdict`: Python 3.11 would make a `Counter` of the pairs of a `Counter`.
    return {
        "items": sample.items,
        "whole": sample.whole,
        "types": dict(sample.types),
        "tenants": dict(sample.tenants),
    }


def _lane(name: str, lane: LaneStatus) -> dict[str, Any]:
    return {
        "lane": name,
        "waiting": lane.queue.waiting,
        "delayed": lane.queue.delayed,
        "in_flight": lane.queue.in_flight,
        "oldest_seconds": None if lane.oldest is None else lane.oldest.total_seconds(),
        "dlq_messages": lane.dlq_messages,
    }


def _burn_rates(alarms: AlarmsNow | Unread) -> list[dict[str, Any]] | None:
    if isinstance(alarms, Unread) or isinstance(alarms.burn_rates, Unread):
        return None
    return [
        {
            "of": burn.bad_events,
            "window_seconds": burn.window.total_seconds(),
            "rate": burn.rate,
            "fires_above": burn.fires_above,
        }
        for burn in alarms.burn_rates
    ]


def _throughput(status: SystemStatus) -> dict[str, Any] | None:
    throughput = status.throughput
    if throughput is None or isinstance(throughput, Unread):
        return None
    return {
        "seconds": WINDOW.total_seconds(),
        "lanes": throughput.lanes,
        "types": {
            name: {str(metric): number for metric, number in each.counts.items()}
            | {"longest_wait_seconds": None if each.longest_wait is None else each.longest_wait.total_seconds()}
            for name, each in throughput.types.items()
        },
        "publish_lag_seconds": None if throughput.publish_lag is None else throughput.publish_lag.total_seconds(),
    }


def _counted(name: str, counted: Counted | Unread | None) -> dict[str, Any]:
    known = counted if isinstance(counted, Counted) else None
    return {name: known and known.number, f"{name}_exact": known and known.exact}
