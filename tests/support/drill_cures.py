"""What the stage of each incident needs before it is healthy again. Independent of the runbook.

Each entry is a pattern of one command of an operator, or of a deployment. They must come in this order.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final


@dataclass(frozen=True, slots=True)
class Cure:
    """`alarm` lists what ends the alarm, and `jobs` what else must happen before the jobs can end."""

    alarm: Sequence[str]
    jobs: Sequence[str] = ()
    #: The status with which single submissions are refused while the cure goes on, and whether they are after it.
    refusal: int | None = None
    refused_after: bool = False
    #: Cause and key of the waiting jobs in which the incident shows, if it has no alarm.
    shown: tuple[str, str] = ("", "")


_REDRIVEN: Final = ("tidemill redrive --type {} .*--yes", "tidemill dlq sweep --yes")
_SENT_AGAIN: Final = "tidemill reconcile --overdue-by 1"


def _redriven(type_: str) -> list[str]:
    return [each.format(type_) for each in _REDRIVEN]


CURES: Final[Mapping[str, Cure]] = {
    "disabled-publisher": Cure(["tidemill repair .*--yes"]),
    "poison-flood": Cure(["deploy work TIDEMILL_DEMO_FIXED=yes", *_redriven("demo.poison")]),
    # Its paused jobs are the ones that kill their workers.
    "killed-workers": Cure(["tidemill pause type=demo.slow .*"], ["tidemill resume type=demo.slow .*"]),
    "disabled-scheduler": Cure(["tidemill repair .*--yes"]),
    "lost-messages": Cure(["tidemill repair .*--yes", _SENT_AGAIN]),
    # Without the quota, the flood goes on, and its jobs wait behind the pause.
    "tenant-flood": Cure(
        ["tidemill config set quotas.flood .*", "tidemill pause tenant=flood .*"],
        ["tidemill resume tenant=flood .*"],
        refusal=HTTPStatus.TOO_MANY_REQUESTS,
        refused_after=True,
    ),
    # A breaker that is forced open stays so.
    "downstream-down": Cure(
        [
            """tidemill config set breakers.payments {"force": "open"} .*""",
            "the service works",
            "tidemill config set breakers.payments --remove .*",
        ],
        shown=("breaker", "payments"),
    ),
    "downstream-slow": Cure(
        [
            "tidemill config set types.demo.ship.concurrency_per_key [0-9]+ .*",
            "the service works",
            "tidemill config set types.demo.ship.concurrency_per_key --remove .*",
        ],
        shown=("limit", '["demo.ship", ""]'),
    ),
    # Until the level is removed, jobs that callers want are refused.
    "foreground-strained": Cure(
        ["tidemill config set strain.level [123] .*"],
        ["tidemill config set strain.level --remove .*"],
        refusal=HTTPStatus.SERVICE_UNAVAILABLE,
    ),
    "drifted-mapping": Cure(["tidemill repair .*--yes"]),
    "throttled-store": Cure(
        ["aws dynamodb update-table --table-name jobs --on-demand-throughput MaxWriteRequestUnits=-1"]
    ),
    # The broken version was published by hand, so the deployed one is ahead.
    "partition": Cure(["tidemill rollback --forward .*--yes"]),
    "broken-deployment": Cure(["tidemill rollback (?!--forward).*--yes", *_redriven("demo.ordered")]),
    # A new stream has none of the earlier changes.
    "lost-stream": Cure(["tidemill repair .*--yes"], [_SENT_AGAIN]),
    "restore": Cure(
        [
            # A recovery is refused as long as a job may start, or the table is not there.
            *(f"tidemill pause lane={lane} --reject-new .*" for lane in ("critical", "default", "bulk")),
            "aws dynamodb restore-table-from-backup --backup-arn .+ --target-table-name jobs-restored",
            "aws dynamodb wait table-exists --table-name jobs-restored",
            "tidemill recover jobs-restored .*--yes",
            "deploy jobs_stream=.+ epoch=1",
        ]
    ),
}
