"""`Clockwork`: what neither a caller nor a queue starts. It wakes jobs, submits periodic ones and reconciles."""

from collections.abc import Sequence
from typing import Final

from aws_cdk import Acknowledgment, Validations

from tidemill import names
from tidemill.cdk.app_stack import AppStack
from tidemill.cdk.asset import ROOT
from tidemill.cdk.dead_letter_queue import dead_letter_queue
from tidemill.cdk.iam_actions import ADVANCE, GET, GET_MANY, PUT, QUERY, SCAN, UPDATE
from tidemill.cdk.job_function import JobFunction
from tidemill.cdk.job_schedules import periodic
from tidemill.cdk.lane import CONSUME, Lane, lane_urls
from tidemill.cdk.scheduled_call import Clock
from tidemill.cdk.storage import Storage
from tidemill.names import Env

WAKING: Final = f"rate({names.WAKE_INTERVAL_SECONDS // 60} minute)"
RECONCILING: Final = "rate(1 day)"


class Clockwork:
    """Made in `stack`."""

    def __init__(self, stack: AppStack, *, storage: Storage, lanes: Sequence[Lane]) -> None:
        self._stack = stack
        self._storage = storage
        self.wake, self.tick, self.reconcile = self._wake(), self._tick(), self._reconcile(lanes)
        self.functions: Sequence[JobFunction] = (self.wake, self.tick, self.reconcile)
        #: Calls that came to nothing.
        self.missed = dead_letter_queue(stack, "Missed")
        # A call that is missed is made up for by the next one, a minute later.
        Clock(stack, "WakeClock", function=self.wake, missed=None).call("Schedule", WAKING)
        Clock(stack, "ReconcileClock", function=self.reconcile, missed=self.missed).call("Schedule", RECONCILING)
        ticks = Clock(stack, "TickClock", function=self.tick, missed=self.missed)
        for job_type in periodic(stack.config.job_packages, root=ROOT):
            says = {names.TICK_TYPE: job_type.type, names.TICK_SCHEDULED_AT: names.SCHEDULED_TIME}
            ticks.call(job_type.type, job_type.expression, says=says)

    def _wake(self) -> JobFunction:
        wake = self._stack.function(
            "wake", self._storage.storing, timeout_seconds=self._stack.config.wake_timeout_seconds
        )
        wake.allow([QUERY], [self._storage.jobs.index_arn(names.ATTENTION_INDEX)])
        self._storage.allow(wake, GET_MANY, UPDATE)
        return wake

    def _tick(self) -> JobFunction:
        """What it submits is in no group, and its payload is empty. What a schedule has fired before is looked up."""
        tick = self._stack.function(
            "tick", self._storage.submitting, timeout_seconds=self._stack.config.api_timeout_seconds
        )
        self._storage.allow(tick, GET, PUT)
        return tick

    def _reconcile(self, lanes: Sequence[Lane]) -> JobFunction:
        """Reads everything, does again what was left undone, and looks through letters."""
        reconcile = self._stack.function(
            "reconcile",
            {
                **self._storage.storing,
                Env.LANES: lane_urls(self._stack, lanes),
                Env.RECONCILE_LIMIT_SECONDS: str(self._stack.config.reconcile_limit_seconds),
            },
            timeout_seconds=self._stack.config.reconcile_timeout_seconds,
        )
        self._storage.allow(reconcile, SCAN, GET_MANY, *ADVANCE)
        reconcile.allow(CONSUME, [lane.dead_letters.queue_arn for lane in lanes])
        reconcile.allow(["sqs:GetQueueAttributes"], [lane.queue.queue_arn for lane in lanes])
        # How long a lane's oldest message has waited. CloudWatch knows no resources that metrics belong to:
        # https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/iam-access-control-overview-cw.html
        reconcile.allow(["cloudwatch:GetMetricStatistics"], ["*"])
        Validations.of(reconcile).acknowledge(
            Acknowledgment(id="AwsSolutions-IAM5[Resource::*]", reason="Reading metrics cannot be bound to a resource.")
        )
        return reconcile
