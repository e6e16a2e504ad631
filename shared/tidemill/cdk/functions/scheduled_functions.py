"""`ScheduledFunctions`: the functions that the scheduler calls: wake, tick (periodic jobs), reconcile and canary."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import jsii
from aws_cdk import Acknowledgment, Annotations, ArnFormat, Aws, IStableListProducer, Lazy, Stack, Validations
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_scheduler as scheduler
from aws_cdk.aws_apigatewayv2 import HttpMethod

from tidemill import names
from tidemill.cdk.functions.function_factory import FunctionFactory
from tidemill.cdk.functions.job_function import JobFunction
from tidemill.cdk.functions.scheduled_call import ScheduledCall
from tidemill.cdk.http_api import Api
from tidemill.cdk.iam_actions import ADVANCE, DELETE_FILE, DESCRIBE_TABLE, GET, GET_MANY, PUT, QUERY, SCAN
from tidemill.cdk.lanes.dead_letter_queue import dead_letter_queue
from tidemill.cdk.lanes.lane import CONSUME, LaneConstruct, lane_urls
from tidemill.cdk.storage.storage import Storage
from tidemill.domain.waiting.schedule_times import Cron, parse
from tidemill.names import Env

WAKE_SCHEDULE: Final = f"rate({names.WAKE_INTERVAL_SECONDS // 60} minute)"
#: One vCPU. A call that wakes as many jobs as its pace allows needs half of it.
#: https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html
WAKE_MEMORY_MB: Final = 1769
RECONCILE_SCHEDULE: Final = f"rate({names.RECONCILE_INTERVAL_SECONDS // 60} minutes)"
CANARY_SCHEDULE: Final = f"rate({names.CANARY_INTERVAL_SECONDS // 60} minute)"
_Resource = dynamodb.CfnTable | scheduler.CfnSchedule


@jsii.implements(IStableListProducer)
class _Arns:
    """The ARNs of all resources of a type in the stack, and further ones. An app may add some until the synth."""

    def __init__(self, stack: Stack, type_: type[_Resource], arn: Callable[[Any], str], *further: str) -> None:
        self._stack = stack
        self._type = type_
        self._arn = arn
        self._further = further

    def produce(self) -> list[str]:
        found = [self._arn(each) for each in self._stack.node.find_all() if isinstance(each, self._type)]
        return list(dict.fromkeys([*self._further, *found]))


class ScheduledFunctions:
    """Created in the scope of `functions`. `schedules` has the expression of each periodic type."""

    def __init__(
        self,
        functions: FunctionFactory,
        *,
        storage: Storage,
        lanes: Sequence[LaneConstruct],
        api: Api,
        schedules: Mapping[str, str],
    ) -> None:
        self._functions = functions
        self._config = functions.config
        self._storage = storage
        self.wake, self.tick, self.reconcile = self._wake(), self._tick(), self._reconcile(lanes)
        #: None where the stage has none.
        self.canary = self._canary(api) if self._config.canary else None
        functions_of_all = (self.wake, self.tick, self.reconcile, self.canary)
        self.functions: Sequence[JobFunction] = [function for function in functions_of_all if function]
        scope = functions.scope
        #: Calls that failed after all retries.
        self.missed_calls = dead_letter_queue(scope, "Missed")
        if self.canary:
            # The next call, a minute later, submits canaries of its own.
            clock = ScheduledCall(scope, "CanaryClock", function=self.canary, missed_calls=None)
            clock.add_schedule("Schedule", CANARY_SCHEDULE)
        # The next call, a minute later, also does the work of a missed one.
        wake = ScheduledCall(scope, "WakeClock", function=self.wake, missed_calls=None)
        for part in range(self._config.wake_parts):
            event = {names.WAKE_PART: str(part), names.WAKE_PARTS: str(self._config.wake_parts)}
            wake.add_schedule(f"Schedule{part or ''}", WAKE_SCHEDULE, event=event)
        reconcile = ScheduledCall(scope, "ReconcileClock", function=self.reconcile, missed_calls=self.missed_calls)
        reconcile.add_schedule("Schedule", RECONCILE_SCHEDULE, event={names.CONTINUE: "true"})
        tick = ScheduledCall(scope, "TickClock", function=self.tick, missed_calls=self.missed_calls)
        for job_type, expression in schedules.items():
            cron = parse(expression)
            if isinstance(cron, Cron) and cron.next_time(after=datetime.now(UTC)) is None:
                Annotations.of(scope).add_warning_v2(
                    "tidemill:schedule",
                    f"the schedule {expression} of {job_type} has no further time: remove it, or correct its year",
                )
            event = {names.TICK_TYPE: job_type, names.TICK_SCHEDULED_AT: names.SCHEDULED_TIME}
            tick.add_schedule(job_type, expression, event=event)

    @property
    def canary_tenant(self) -> str | None:
        """The tenant of the canaries, as the API names a caller; None without canaries."""
        if self.canary is None:
            return None
        if self._config.jwt_issuer:
            return names.CANARY_TENANT
        role = self.canary.role_name if self._config.callers_by_name else self.canary.role_id
        return f"{Aws.ACCOUNT_ID}:{role}"

    def compare_with_template(self) -> None:
        """Let reconcile compare the resources of the stack with the template, also those that the app adds to it."""
        stack = Stack.of(self._functions.scope)

        def table(resource: dynamodb.CfnTable) -> str:
            return resource.attr_arn

        def schedules(resource: scheduler.CfnSchedule) -> str:
            name = f"{resource.group_name}/{resource.ref}" if resource.group_name else "default/*"
            return stack.format_arn(service="scheduler", resource="schedule", resource_name=name)

        for every in ("lambda:{}:event-source-mapping:*", "scheduler:{}:schedule/default/*", "sqs:{}:*"):
            arn = "arn:<AWS::Partition>:" + every.format("<AWS::Region>:<AWS::AccountId>")
            Validations.of(self.reconcile).acknowledge(
                Acknowledgment(
                    id=f"AwsSolutions-IAM5[Resource::{arn}]",
                    # 10,240 characters: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html
                    reason="The names of all would exceed the size of the policies of a role. The right only reads.",
                )
            )
        # An adopted jobs table is not in the stack.
        tables = _Arns(stack, dynamodb.CfnTable, table, self._storage.jobs.table.table_arn)
        mappings = stack.format_arn(
            service="lambda",
            resource="event-source-mapping",
            resource_name="*",
            arn_format=ArnFormat.COLON_RESOURCE_NAME,
        )
        # The id and not the name: a call that names a stack is authorised against `stack/NAME/*`, which the id is not.
        # https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/control-access-with-iam.html
        self.reconcile.function.add_environment(Env.STACK, stack.stack_id)
        self.reconcile.allow_on_dependents(
            "Comparison",
            {
                "cloudformation:DescribeStacks": [stack.stack_id],
                "cloudformation:GetTemplate": [stack.stack_id],
                "cloudformation:ListStackResources": [stack.stack_id],
                "lambda:GetEventSourceMapping": [mappings],
                "scheduler:GetSchedule": Lazy.list(_Arns(stack, scheduler.CfnSchedule, schedules)),
                **{action: Lazy.list(tables) for action in DESCRIBE_TABLE},
                # A mapping that a repair added for a new stream is found by a list, and composite alarms only by
                # a description of all. Neither has resource-level permissions:
                # https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_DescribeAlarms.html
                # https://docs.aws.amazon.com/service-authorization/latest/reference/list_awslambda.html
                "cloudwatch:DescribeAlarms": ["*"],
                "lambda:ListEventSourceMappings": ["*"],
            },
        )
        # The queues of this stage, also those that the app adds:
        # https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-abac.html
        tagged = {
            f"aws:ResourceTag/{names.Tag.APP}": names.APP,
            f"aws:ResourceTag/{names.Tag.STAGE}": self._config.label,
        }
        self.reconcile.allow(
            ["sqs:GetQueueAttributes"],
            [stack.format_arn(service="sqs", resource="*")],
            only_if={"StringEquals": tagged},
        )

    def _wake(self) -> JobFunction:
        wake = self._functions.function(
            "wake",
            # It submits nothing. A job that waits for its type is released once this code can load that type.
            {**self._storage.submitting, **self._storage.governing},
            timeout_seconds=self._config.wake_timeout_seconds,
            memory_mb=WAKE_MEMORY_MB,
        )
        wake.allow([QUERY], [self._storage.jobs.index_arn(names.ATTENTION_INDEX)])
        # Owed work advances groups and deletes payloads. The release of parked jobs reads limits and updates them.
        self._storage.allow(wake, GET_MANY, *ADVANCE)
        self._storage.allow_app_config(wake)
        self._storage.files.allow(wake, [DELETE_FILE], of=[names.PAYLOADS_PREFIX])
        return wake

    def _tick(self) -> JobFunction:
        """Its jobs have no group and an empty payload. `GetItem` finds a job that an earlier call submitted."""
        tick = self._functions.function(
            "tick", self._storage.submitting, timeout_seconds=self._config.api_timeout_seconds
        )
        self._storage.allow(tick, GET, PUT, tenant=names.SCHEDULE_TENANT)
        self._storage.allow_configuration(tick)
        return tick

    def _canary(self, api: Api) -> JobFunction:
        """It may submit over HTTP, and shares no other right with the functions that it watches.

        No function has a token of the callers' issuer. Where callers send tokens, it may submit for its own tenant.
        """
        over_http: Mapping[str, str] = {Env.API_ID: api.api.api_id, Env.API_URL: api.api.api_endpoint}
        canary = self._functions.function(
            "canary",
            self._storage.submitting if self._config.jwt_issuer else over_http,
            # An API answers within 30 seconds.
            timeout_seconds=names.CANARY_INTERVAL_SECONDS,
        )
        if self._config.jwt_issuer:
            self._storage.allow(canary, GET, PUT, tenant=names.CANARY_TENANT)
            return canary
        canary.allow(["execute-api:Invoke"], [api.route_arn(HttpMethod.POST, "/jobs")])
        return canary

    def _reconcile(self, lanes: Sequence[LaneConstruct]) -> JobFunction:
        """Does owed work, scans the table, repairs jobs, groups and payloads, and sorts DLQ messages."""
        reconcile = self._functions.function(
            "reconcile",
            {
                **self._storage.loading,
                Env.LANES: lane_urls(self._functions.scope, lanes),
                Env.RECONCILE_LIMIT_SECONDS: str(self._config.reconcile_limit_seconds),
                Env.RECONCILE_READ_UNITS: str(self._config.reconcile_read_units),
            },
            timeout_seconds=self._config.reconcile_timeout_seconds,
        )
        reconcile.allow([QUERY], [self._storage.jobs.index_arn(names.ATTENTION_INDEX)])
        self._storage.allow(reconcile, SCAN, GET_MANY, *ADVANCE)
        self._storage.files.allow(reconcile, [DELETE_FILE], of=[names.PAYLOADS_PREFIX])
        reconcile.allow(CONSUME, [lane.dead_letters.queue_arn for lane in lanes])
        # For the age of a lane's oldest message. CloudWatch has no resource-level permissions for metrics:
        # https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/iam-access-control-overview-cw.html
        reconcile.allow(["cloudwatch:GetMetricStatistics"], ["*"])
        Validations.of(reconcile).acknowledge(
            Acknowledgment(
                id="AwsSolutions-IAM5[Resource::*]", reason="CloudWatch has no resource-level permissions for metrics."
            )
        )
        return reconcile
