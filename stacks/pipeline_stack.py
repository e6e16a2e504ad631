"""`PipelineStack`: everything a job needs. Composition only; what may touch what is said here and nowhere else."""

from collections.abc import Mapping, Sequence
from typing import Final

from aws_cdk import Acknowledgment, CfnOutput, Validations
from aws_cdk.aws_apigatewayv2 import HttpMethod
from constructs import Construct

from shared import names
from shared.names import EXPORTS_PREFIX, PAYLOADS_PREFIX, Env, Output
from stacks.alarm import add_alarms
from stacks.alarm_topic import AlarmTopic
from stacks.alarms import api_alarms, clock_alarms, function_alarms, lane_alarms, publisher_alarms
from stacks.api import Api
from stacks.app_stack import AppStack
from stacks.asset import GEOIP_DATABASE, ROOT
from stacks.clock import Clock
from stacks.config import LaneConfig, StageConfig
from stacks.dashboard import Dashboard
from stacks.files_bucket import FilesBucket
from stacks.job_function import JobFunction
from stacks.job_table import JobTable
from stacks.key_secret import key_secret
from stacks.lane import CONSUME, Lane, lane_urls
from stacks.letter_queue import letter_queue
from stacks.publisher import Publisher
from stacks.schedules import periodic
from stacks.shortener_tables import ShortenerTables

# What of a table may be touched. Each entry of a transaction takes the right of its kind:
# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/transaction-apis-iam.html
GET: Final = "dynamodb:GetItem"
GET_MANY: Final = "dynamodb:BatchGetItem"
QUERY: Final = "dynamodb:Query"
SCAN: Final = "dynamodb:Scan"
PUT: Final = "dynamodb:PutItem"
UPDATE: Final = "dynamodb:UpdateItem"
DELETE: Final = "dynamodb:DeleteItem"
#: To accept a job: it, its payload and its place in a group are put; a payload that turns out not to be needed is
#: taken back; the order of a group, and what a replay answers with, are read.
ACCEPT: Final = (GET, PUT, DELETE)
#: To move the head of a group: its job is updated, its order put and its place deleted.
ADVANCE: Final = (GET, PUT, UPDATE, DELETE)

GET_FILE: Final = "s3:GetObject"
PUT_FILE: Final = "s3:PutObject"
DELETE_FILE: Final = "s3:DeleteObject"
ABORT_UPLOAD: Final = "s3:AbortMultipartUpload"

WAKING: Final = f"rate({names.WAKE_INTERVAL_SECONDS // 60} minute)"
RECONCILING: Final = "rate(1 day)"


class PipelineStack(AppStack):
    def __init__(self, scope: Construct, *, config: StageConfig, asset: str) -> None:
        super().__init__(
            scope, "Pipeline", config=config, asset=asset, description="Millrace: jobs, their lanes and their API"
        )
        self.jobs = JobTable(self, "Jobs", config=config)
        self.files = FilesBucket(self, "Files", config=config)
        self.shortener = ShortenerTables(self, "Shortener", config=config)
        lanes = [self._lane(lane) for lane in config.lanes]
        publisher = self._publisher(lanes)
        submit, query, control = self._submit(), self._query(), self._control()
        wake, tick, reconcile = self._wake(), self._tick(), self._reconcile(lanes)

        api = Api(self, "Api", config=config, name=f"{config.name}-jobs")
        api.add_route(HttpMethod.POST, "/jobs", submit)
        api.add_route(HttpMethod.POST, "/jobs/batch", submit)
        api.add_route(HttpMethod.GET, "/jobs", query)
        api.add_route(HttpMethod.GET, "/jobs/{id}", query)
        api.add_route(HttpMethod.POST, "/jobs/{id}/cancel", control)
        api.add_route(HttpMethod.POST, "/jobs/{id}/retry", control)
        api.add_open_route(
            HttpMethod.GET, "/openapi.json", query, reason="It describes the API, which is public, and holds no job."
        )

        missed = letter_queue(self, "Missed")
        Validations.of(missed).acknowledge(
            Acknowledgment(id="AwsSolutions-SQS3", reason="It is where calls go that came to nothing, and it rings.")
        )
        Clock(self, "WakeClock", function=wake, missed=None).call("Schedule", WAKING)
        Clock(self, "ReconcileClock", function=reconcile, missed=missed).call("Schedule", RECONCILING)
        ticks = Clock(self, "TickClock", function=tick, missed=missed)
        for job_type in periodic(config.job_packages, root=ROOT):
            says = {names.TICK_TYPE: job_type.type, names.TICK_SCHEDULED_AT: names.SCHEDULED_TIME}
            ticks.call(job_type.type, job_type.expression, says=says)

        functions = [submit, query, control, wake, tick, reconcile]
        self.alarms = AlarmTopic(self, "Alarms", config=config)
        ringing = [
            *(alarm for lane in lanes for alarm in lane_alarms(lane, config=config)),
            *api_alarms(api),
            *publisher_alarms(publisher),
            *clock_alarms(wake, missed),
            *(alarm for function in functions for alarm in function_alarms(function)),
        ]
        self.alarms.call(reconcile, upon=add_alarms(self, ringing, config=config, topic=self.alarms))
        dashboard = Dashboard(self, "Overview", config=config, lanes=lanes, publisher=publisher, jobs=self.jobs.table)

        by_name = {function.verb: function for function in (*functions, publisher.function)}
        by_name |= {lane.function_key: lane.worker for lane in lanes}
        for output, value in {
            Output.API_ID: api.api.api_id,
            Output.API_URL: api.api.api_endpoint,
            Output.JOBS_TABLE: self.jobs.table.table_name,
            Output.LANES: lane_urls(self, lanes),
            Output.FUNCTIONS: self.to_json_string({key: one.function.function_name for key, one in by_name.items()}),
            Output.ALARM_TOPIC: self.alarms.topic.topic_arn,
            Output.DASHBOARD: dashboard.dashboard.dashboard_name,
        }.items():
            CfnOutput(self, output, value=value)

    @property
    def _storing(self) -> Mapping[str, str]:
        """What a function needs to read or write jobs."""
        return {
            Env.JOBS_TABLE: self.jobs.table.table_name,
            Env.RETENTION_DAYS: str(self.config.job_retention_days),
            Env.LISTING: "true" if self.config.listing else "",
        }

    @property
    def _loading(self) -> Mapping[str, str]:
        """What a function needs to read or write jobs with their payloads."""
        return {**self._storing, Env.FILES_BUCKET: self.files.bucket.bucket_name}

    @property
    def submitting(self) -> Mapping[str, str]:
        """What a function needs to submit a job, beside `ACCEPT` on the table."""
        return {**self._loading, Env.JOB_PACKAGES: ",".join(self.config.job_packages)}

    def _lane(self, config: LaneConfig) -> Lane:
        """A lane whose worker can run every type of job: one type's tables are every worker's to write."""
        shortener = self.shortener
        lane = Lane(
            self,
            f"Lane-{config.name}",
            config=self.config,
            lane=config,
            code=self.code,
            environment={
                **self.submitting,
                Env.LINKS_TABLE: shortener.links.table_name,
                Env.CLICKS_TABLE: shortener.clicks.table_name,
                Env.ADDRESS_KEY_SECRET: shortener.address_key.secret_arn,
                Env.GEOIP_DATABASE: GEOIP_DATABASE if self.config.geoip_database else "",
            },
        )
        # Claim, settle and release are updates, in a transaction too. Follow-up jobs are accepted, groups advanced.
        self._allow(lane.worker, *ADVANCE)
        self.files.allow(lane.worker, [GET_FILE, PUT_FILE], of=[PAYLOADS_PREFIX])
        # An export is written in parts, and those of one that is given up go.
        self.files.allow(lane.worker, [GET_FILE, PUT_FILE, DELETE_FILE, ABORT_UPLOAD], of=[EXPORTS_PREFIX])
        lane.worker.allow([GET], [shortener.links.table_arn])
        lane.worker.allow([GET, QUERY, PUT, UPDATE], [shortener.clicks.table_arn])
        lane.worker.allow(["secretsmanager:GetSecretValue"], [shortener.address_key.secret_arn])
        return lane

    def _publisher(self, lanes: Sequence[Lane]) -> Publisher:
        """Dispatches jobs, lets groups go on, and deletes the payloads of jobs that are gone."""
        publisher = Publisher(
            self,
            "Publisher",
            config=self.config,
            code=self.code,
            jobs=self.jobs,
            lanes=lanes,
            environment=self._loading,
        )
        self._allow(publisher.function, *ADVANCE)
        self.files.allow(publisher.function, [DELETE_FILE], of=[PAYLOADS_PREFIX])
        return publisher

    def _submit(self) -> JobFunction:
        submit = self.api_function("submit", {**self.submitting, **self.callers})
        self._allow(submit, *ACCEPT)
        self.files.allow(submit, [GET_FILE, PUT_FILE, DELETE_FILE], of=[PAYLOADS_PREFIX])
        return submit

    def _query(self) -> JobFunction:
        query = self.api_function("query", {**self._loading, **self.callers})
        self._allow(query, GET)
        self.files.allow(query, [GET_FILE], of=[PAYLOADS_PREFIX])
        if self.config.listing:
            key = key_secret(
                self,
                "CursorKey",
                config=self.config,
                use="signs the cursors of listings",
                why_not_rotated="Cursors live for minutes. A new key, made by hand, ends those that are out there.",
            )
            query.function.add_environment(Env.CURSOR_KEY_SECRET, key.secret_arn)
            query.allow(["secretsmanager:GetSecretValue"], [key.secret_arn])
            self._allow(query, GET_MANY)
            query.allow([QUERY], [self.jobs.index_arn(names.LISTING_INDEX)])
        return query

    def _control(self) -> JobFunction:
        """Cancels and retries. A job of a group is put back into its order when it is retried."""
        control = self.api_function("control", {**self._loading, **self.callers})
        self._allow(control, GET, PUT, UPDATE)
        self.files.allow(control, [GET_FILE], of=[PAYLOADS_PREFIX])
        return control

    def _wake(self) -> JobFunction:
        wake = self.function("wake", self._storing, timeout_seconds=self.config.wake_timeout_seconds)
        self._allow(wake, GET_MANY, UPDATE)
        wake.allow([QUERY], [self.jobs.index_arn(names.ATTENTION_INDEX)])
        return wake

    def _tick(self) -> JobFunction:
        """What it submits is in no group, and its payload is empty."""
        tick = self.function("tick", self.submitting, timeout_seconds=self.config.api_timeout_seconds)
        self._allow(tick, PUT)
        return tick

    def _reconcile(self, lanes: Sequence[Lane]) -> JobFunction:
        reconcile = self.function(
            "reconcile",
            {
                **self._storing,
                Env.LANES: lane_urls(self, lanes),
                Env.RECONCILE_LIMIT_SECONDS: str(self.config.reconcile_limit_seconds),
            },
            timeout_seconds=self.config.reconcile_timeout_seconds,
        )
        self._allow(reconcile, SCAN, GET_MANY, *ADVANCE)
        reconcile.allow(CONSUME, [lane.letters.queue_arn for lane in lanes])
        reconcile.allow(["sqs:GetQueueAttributes"], [lane.queue.queue_arn for lane in lanes])
        # How long a lane's oldest message has waited. CloudWatch knows no resources that metrics belong to:
        # https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/iam-access-control-overview-cw.html
        reconcile.allow(["cloudwatch:GetMetricStatistics"], ["*"])
        Validations.of(reconcile).acknowledge(
            Acknowledgment(id="AwsSolutions-IAM5[Resource::*]", reason="Reading metrics cannot be bound to a resource.")
        )
        return reconcile

    def _allow(self, function: JobFunction, *actions: str) -> None:
        function.allow(actions, [self.jobs.table.table_arn])
