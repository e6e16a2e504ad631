"""`PipelineStack`: everything a job needs. Composition only; what may touch what is said here and nowhere else."""

from collections.abc import Mapping

from aws_cdk import CfnOutput
from aws_cdk.aws_apigatewayv2 import HttpMethod
from constructs import Construct

from shared.names import Env, Output
from stacks.alarm_topic import AlarmTopic
from stacks.alarms import add_alarms, api_alarms, function_alarms, lane_alarms, publisher_alarms
from stacks.api import Api
from stacks.app_stack import AppStack
from stacks.asset import GEOIP_DATABASE
from stacks.config import LaneConfig, StageConfig
from stacks.dashboard import Dashboard
from stacks.job_table import JobTable
from stacks.lane import Lane, lane_urls
from stacks.publisher import Publisher
from stacks.shortener_tables import ShortenerTables


class PipelineStack(AppStack):
    def __init__(self, scope: Construct, *, config: StageConfig, asset: str) -> None:
        super().__init__(
            scope, "Pipeline", config=config, asset=asset, description="Millrace: jobs, their lanes and their API"
        )
        self.jobs = JobTable(self, "Jobs", config=config)
        self.shortener = ShortenerTables(self, "Shortener", config=config)
        lanes = [self._lane(lane) for lane in config.lanes]
        publisher = Publisher(self, "Publisher", config=config, code=self.code, jobs=self.jobs, lanes=lanes)
        submit = self.api_function("submit", self.submitting)
        submit.allow(["dynamodb:PutItem"], [self.jobs.table.table_arn])
        query = self.api_function("query", self._storing)
        query.allow(["dynamodb:GetItem"], [self.jobs.table.table_arn])

        api = Api(self, "Api", config=config, name=f"{config.name}-jobs")
        api.add_signed_route(HttpMethod.POST, "/jobs", submit)
        api.add_signed_route(HttpMethod.GET, "/jobs/{id}", query)

        self.alarms = AlarmTopic(self, "Alarms", config=config)
        ringing = [
            *(alarm for lane in lanes for alarm in lane_alarms(lane, config=config)),
            *api_alarms(api),
            *publisher_alarms(publisher),
            *function_alarms(submit),
            *function_alarms(query),
        ]
        add_alarms(self, ringing, config=config, topic=self.alarms)
        dashboard = Dashboard(self, "Overview", config=config, lanes=lanes, publisher=publisher, jobs=self.jobs.table)

        functions = {function.verb: function for function in (submit, query, publisher.function)}
        functions |= {lane.function_key: lane.worker for lane in lanes}
        for output, value in {
            Output.API_ID: api.api.api_id,
            Output.API_URL: api.api.api_endpoint,
            Output.JOBS_TABLE: self.jobs.table.table_name,
            Output.LANES: lane_urls(self, lanes),
            Output.FUNCTIONS: self.to_json_string({key: one.function.function_name for key, one in functions.items()}),
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
        }

    @property
    def submitting(self) -> Mapping[str, str]:
        """What a function needs to submit a job, beside `dynamodb:PutItem` on the table."""
        return {**self._storing, Env.JOB_PACKAGES: ",".join(self.config.job_packages)}

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
                Env.CLICKS_TABLE: shortener.clicks.table_name,
                Env.ADDRESS_KEY_SECRET: shortener.address_key.secret_arn,
                Env.GEOIP_DATABASE: GEOIP_DATABASE if self.config.geoip_database else "",
            },
        )
        # Claim, settle, release and redrive are all updates, in a transaction too.
        lane.worker.allow(["dynamodb:UpdateItem"], [self.jobs.table.table_arn])
        lane.worker.allow(["dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem"], [shortener.clicks.table_arn])
        lane.worker.allow(["secretsmanager:GetSecretValue"], [shortener.address_key.secret_arn])
        return lane
