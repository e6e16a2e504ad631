"""`PipelineStack`: everything a job needs. Composition only; what a function may touch is said where it is made."""

from collections.abc import Sequence

from aws_cdk import CfnOutput
from constructs import Construct

from stacks.shortener_tables import ShortenerTables
from tidemill.cdk.alarm import add_alarms
from tidemill.cdk.alarm_catalogue import api_alarms, clock_alarms, function_alarms, lane_alarms, publisher_alarms
from tidemill.cdk.alarm_topic import AlarmTopic
from tidemill.cdk.app_stack import AppStack
from tidemill.cdk.asset import GEOIP_DATABASE
from tidemill.cdk.config import LaneConfig, StageConfig
from tidemill.cdk.dashboard import Dashboard
from tidemill.cdk.iam_actions import (
    ABORT_FILE,
    ADVANCE,
    DELETE_FILE,
    GET,
    GET_FILE,
    PUT,
    PUT_FILE,
    QUERY,
    READ_KEY,
    UPDATE,
)
from tidemill.cdk.job_api import JobApi
from tidemill.cdk.lane import Lane, lane_urls
from tidemill.cdk.publisher import Publisher
from tidemill.cdk.scheduled_functions import Clockwork
from tidemill.cdk.storage import Storage
from tidemill.names import EXPORTS_PREFIX, PAYLOADS_PREFIX, Env, Output


class PipelineStack(AppStack):
    def __init__(self, scope: Construct, *, config: StageConfig, asset: str) -> None:
        super().__init__(
            scope, "Pipeline", config=config, asset=asset, description="Tidemill: jobs, their lanes and their API"
        )
        self.storage = Storage(self, config=config)
        self.shortener = ShortenerTables(self, "Shortener", config=config)
        lanes = [self._lane(lane) for lane in config.lanes]
        publisher = self._publisher(lanes)
        api = JobApi(self, storage=self.storage)
        clockwork = Clockwork(self, storage=self.storage, lanes=lanes)

        functions = [*api.functions, *clockwork.functions]
        self.alarms = AlarmTopic(self, "Alarms", config=config)
        ringing = [
            *(alarm for lane in lanes for alarm in lane_alarms(lane, config=config)),
            *api_alarms(api.api),
            *publisher_alarms(publisher),
            *clock_alarms(clockwork, config=config),
            *(alarm for function in functions for alarm in function_alarms(function)),
        ]
        reconciling = add_alarms(self, ringing, config=config, topic=self.alarms)
        self.alarms.call(clockwork.reconcile, upon=reconciling)
        jobs = self.storage.jobs.table
        dashboard = Dashboard(self, "Overview", config=config, lanes=lanes, publisher=publisher, jobs=jobs)

        by_name = {function.verb: function for function in (*functions, publisher.function)}
        by_name |= {lane.function_key: lane.worker for lane in lanes}
        for output, value in {
            Output.API_ID: api.api.api.api_id,
            Output.API_URL: api.api.api.api_endpoint,
            Output.JOBS_TABLE: jobs.table_name,
            Output.LANES: lane_urls(self, lanes),
            Output.RETENTION_DAYS: str(config.job_retention_days),
            Output.FUNCTIONS: self.to_json_string({key: one.function.function_name for key, one in by_name.items()}),
            Output.ALARM_TOPIC: self.alarms.topic.topic_arn,
            Output.DASHBOARD: dashboard.dashboard.dashboard_name,
        }.items():
            CfnOutput(self, output, value=value)

    def _lane(self, config: LaneConfig) -> Lane:
        """A lane whose worker can run every type of job: one type's tables are every worker's to write."""
        shortener, files = self.shortener, self.storage.files
        lane = Lane(
            self,
            f"Lane-{config.name}",
            config=self.config,
            lane=config,
            code=self.code,
            environment={
                **self.storage.submitting,
                Env.LINKS_TABLE: shortener.links.table_name,
                Env.CLICKS_TABLE: shortener.clicks.table_name,
                Env.ADDRESS_KEY_SECRET: shortener.address_key.secret_arn,
                Env.GEOIP_DATABASE: GEOIP_DATABASE if self.config.geoip_database else "",
            },
        )
        # Claim, settle and release are updates, in a transaction too. Follow-up jobs are accepted, groups advanced.
        self.storage.allow(lane.worker, *ADVANCE)
        files.allow(lane.worker, [GET_FILE, PUT_FILE], of=[PAYLOADS_PREFIX])
        files.allow(lane.worker, [GET_FILE, PUT_FILE, DELETE_FILE, ABORT_FILE], of=[EXPORTS_PREFIX])
        lane.worker.allow([GET], [shortener.links.table_arn])
        lane.worker.allow([GET, QUERY, PUT, UPDATE], [shortener.clicks.table_arn])
        lane.worker.allow([READ_KEY], [shortener.address_key.secret_arn])
        return lane

    def _publisher(self, lanes: Sequence[Lane]) -> Publisher:
        """Dispatches jobs, lets groups go on, and deletes the payloads of jobs that are gone."""
        publisher = Publisher(
            self,
            "Publisher",
            config=self.config,
            code=self.code,
            jobs=self.storage.jobs,
            lanes=lanes,
            environment=self.storage.loading,
        )
        self.storage.allow(publisher.function, *ADVANCE)
        self.storage.files.allow(publisher.function, [DELETE_FILE], of=[PAYLOADS_PREFIX])
        return publisher
