"""`Pipeline`: one construct with storage, lanes, API, scheduler, alarms and dashboard."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from aws_cdk import CfnOutput, Stack, Validations
from constructs import Construct

from tidemill.application.job_types import measured
from tidemill.cdk.alarms.alarm import Entry, add_alarms
from tidemill.cdk.alarms.alarm_catalogue import (
    engine_alarms,
    lane_alarms,
    pages,
    publisher_alarms,
    scheduler_alarms,
    shift_parts,
)
from tidemill.cdk.alarms.alarm_topic import AlarmTopics
from tidemill.cdk.alarms.application_alarms import api_alarms
from tidemill.cdk.alarms.archiver_alarms import archiver_alarms
from tidemill.cdk.alarms.burn_rate_alarms import slow_burn
from tidemill.cdk.alarms.dashboard import Dashboard
from tidemill.cdk.alarms.job_type_alarms import job_file_alarm, type_alarms
from tidemill.cdk.config import StageConfig
from tidemill.cdk.functions import job_manifest
from tidemill.cdk.functions.function_factory import FunctionFactory
from tidemill.cdk.functions.gradual_deployment import GradualDeployment, shift_alarms
from tidemill.cdk.functions.job_function import JobFunction
from tidemill.cdk.functions.scheduled_functions import ScheduledFunctions
from tidemill.cdk.iam_actions import (
    ACCEPT,
    ADVANCE,
    DELETE_FILE,
    GET_FILE,
    GET_MANY,
    PUT_FILE,
    QUERY,
    SCAN,
    UPDATE_BY_STATEMENT,
)
from tidemill.cdk.job_api import JobApi
from tidemill.cdk.lanes.lane import LaneConstruct, lane_urls
from tidemill.cdk.lanes.lane_config import LaneConfig
from tidemill.cdk.limit_validation import LimitValidation
from tidemill.cdk.publisher import Publisher
from tidemill.cdk.storage.archiver import Archiver
from tidemill.cdk.storage.storage import Storage
from tidemill.cdk.synth_errors import SynthError
from tidemill.cdk.tags import tag
from tidemill.names import ATTENTION_INDEX, LISTING_INDEX, PAYLOADS_PREFIX, Env, Lane, Output


class Pipeline(Construct):
    """At most one in a stack. It sets the outputs and tags of the stack, and the command line finds the system by them.

    `asset` is the folder that `asset.build` returned, with the manifest of its job types. In a stack of its own, use
    the construct id `Default`: it does not enter the logical ids.

    A worker has only the rights to run jobs. Pass further rights of a job type to `allow_jobs`.
    """

    def __init__(self, scope: Construct, id_: str, *, config: StageConfig, asset: str) -> None:
        super().__init__(scope, id_)
        self.config = config
        self.manifest = job_manifest.read(asset)
        self.manifest.require_lane_time(() if config.short_timeouts else config.lanes)
        tag(Stack.of(self), config)
        Validations.of(self.node.root).add_plugins(LimitValidation())
        functions = FunctionFactory(self, config=config, asset=asset)
        self.storage = Storage(self, config=config)
        self._lanes = [self._lane(lane, functions) for lane in config.lanes]
        if any(job_type.grouped for job_type in self.manifest.types):
            for worker in self._workers(Lane.CRITICAL):
                self.storage.allow(worker, UPDATE_BY_STATEMENT)
        self._publisher = self._publish(functions)
        self._archiver = (
            Archiver(self, "Archiver", config=config, code=functions.code, jobs=self.storage.jobs)
            if config.archive
            else None
        )
        self._api = JobApi(functions, storage=self.storage, lanes=self._lanes)
        self._scheduled = ScheduledFunctions(
            functions, storage=self.storage, lanes=self._lanes, api=self._api.api, schedules=self.manifest.schedules
        )
        self._scheduled.compare_with_template()
        if canary := self._scheduled.canary_tenant:
            # It has no quota, the health of a stage with canaries is also that of its lanes, and only its jobs count.
            for each in (self._api.submit, *(lane.worker for lane in self._lanes)):
                each.function.add_environment(Env.CANARY, canary)
        self.topics = AlarmTopics(self, config=config)
        #: The variables of `add_job_variables`, by worker and name.
        self._job_variables: dict[tuple[JobFunction, str], str] = {}
        added = add_alarms(self, self._alarms(), config=config, topics=self.topics)
        self.topics.tickets.call(
            self._scheduled.reconcile,
            alarm_names=added.calling_reconcile,
            missed_calls=self._scheduled.missed_calls,
        )
        #: The alarms that end the gradual deployment of a function, also of an application's.
        self.shift_alarms = shift_alarms(added.of)
        if config.gradual_deployment:
            workers = (lane.worker for lane in self._lanes)
            GradualDeployment(
                self,
                "Gradual",
                # The scheduler calls the others once a minute at most: a tenth of that tests nothing.
                functions=[*self._api.functions, *workers, self._publisher.function],
                alarm_names=self.shift_alarms,
            )
        jobs = self.storage.jobs
        dashboard = Dashboard(
            self,
            "Overview",
            config=config,
            lanes=self._lanes,
            publisher=self._publisher,
            jobs=jobs,
            submit=self._api.submit,
            alarms=added,
        )
        for output, value in {
            Output.API_ID: self._api.api.api.api_id,
            Output.API_URL: self._api.api.api.api_endpoint,
            Output.JOBS_TABLE: jobs.table.table_name,
            Output.EPOCH: str(self.config.epoch),
            **({Output.APP_CONFIG: self.storage.app_config} if self.storage.app_config else {}),
            Output.FILES_BUCKET: self.storage.files.bucket.bucket_name,
            Output.LANES: lane_urls(self, self._lanes),
            Output.SCHEDULES: json.dumps(self.manifest.schedules),
            Output.RETENTION_DAYS: str(config.job_retention_days),
            Output.AUDIT_RETENTION_DAYS: str(config.audit_retention_days),
            **function_outputs(self, self._functions()),
            Output.ALARM_TOPIC: self.topics.pages.topic.topic_arn,
            Output.TICKET_TOPIC: self.topics.tickets.topic.topic_arn,
            Output.DASHBOARD: dashboard.dashboard.dashboard_name,
        }.items():
            CfnOutput(Stack.of(self), output, value=value)

    def allow_jobs(
        self,
        actions: Sequence[str],
        resources: Sequence[str],
        *,
        lane: Lane = Lane.DEFAULT,
        only_if: Mapping[str, Any] | None = None,
    ) -> None:
        """Allow the job types of `lane` these actions, `only_if` these conditions of IAM hold.

        The workers of less urgent lanes get the right, too: a submission may choose a less urgent lane than its type's.
        """
        for worker in self._workers(lane):
            worker.allow(actions, resources, only_if=only_if)

    def allow_job_files(self, actions: Sequence[str], *, prefix: str, lane: Lane = Lane.DEFAULT) -> None:
        """Allow the jobs of a type to use the files in the bucket whose object keys begin with `prefix`."""
        for worker in self._workers(lane):
            self.storage.files.allow(worker, actions, of=[prefix])

    def add_job_variables(self, variables: Mapping[str, str], *, lane: Lane = Lane.DEFAULT) -> None:
        """Set environment variables that the handlers of the job types of `lane` read.

        The workers of less urgent lanes get them, too. Raises `SynthError` for a variable that has another value there:
        the handlers of the first one would read the second.
        """
        for worker in self._workers(lane):
            for name, value in variables.items():
                if self._job_variables.setdefault((worker, name), value) != value:
                    raise SynthError(
                        f"the variable {name} has another value already for job types of lane {lane} or a less urgent "
                        "one: give one of the two another name. A BusSink takes it as variable=, and each of its "
                        "event_sinks as bus="
                    )
                worker.function.add_environment(name, value)

    def allow_submitting(self, function: JobFunction, *, tenant: str | None = None, debounced: bool = False) -> None:
        """Let a function of the app submit jobs, as `tidemill.client.Tidemill.here` does.

        With `tenant` it may submit only for this tenant, and neither to groups nor from a handler with limits.
        With `debounced`, its submissions may be debounced: then one updates the job of an earlier one.
        """
        self.storage.allow(function, *ACCEPT, tenant=tenant)
        if debounced:
            self.storage.allow_debouncing(function, tenant=tenant)
        for name, value in self.storage.submitting_for_app.items():
            function.function.add_environment(name, value)

    def _workers(self, lane: Lane) -> Iterator[JobFunction]:
        order = list(Lane)
        return (each.worker for each in self._lanes if order.index(each.config.name) >= order.index(lane))

    def _functions(self) -> Mapping[str, JobFunction]:
        """By verb. The key of a worker outside the default lane is verb and lane."""
        readers = [each.function for each in (self._publisher, self._archiver) if each]
        functions = (*self._api.functions, *self._scheduled.functions, *readers)
        return {function.verb: function for function in functions} | {
            lane.function_key: lane.worker for lane in self._lanes
        }

    def _alarms(self) -> Iterator[Entry]:
        yield from pages(self._api, self._scheduled, config=self.config)
        yield from shift_parts(self.config)
        yield from slow_burn(self._api, config=self.config)
        for lane in self._lanes:
            yield from lane_alarms(lane, config=self.config)
        if self.config.metrics_by_type:
            names = [job_type.name for job_type in self.manifest.types]
            yield from type_alarms(measured(names, self.config.metrics_by_type), config=self.config)
        yield job_file_alarm(self.config)
        yield from engine_alarms(self._lanes, self.topics, config=self.config)
        yield from api_alarms(self._api.api, self._api.functions, of="api")
        yield from publisher_alarms(self._publisher)
        if self._archiver:
            yield from archiver_alarms(self._archiver)
        yield from scheduler_alarms(self._scheduled, config=self.config)

    def _lane(self, config: LaneConfig, functions: FunctionFactory) -> LaneConstruct:
        lane = LaneConstruct(
            self,
            f"Lane-{config.name}",
            config=self.config,
            lane=config,
            code=functions.code,
            environment={**self.storage.writing_files, **self.storage.governing},
        )
        # Claim, settle and release update the job. A worker also accepts follow-up jobs and advances groups.
        # Besides advancing groups, a worker releases the parked jobs that wait for its limit slot.
        self.storage.allow(lane.worker, *ADVANCE, GET_MANY)
        self.storage.allow_app_config(lane.worker)
        lane.worker.allow([QUERY], [self.storage.jobs.index_arn(ATTENTION_INDEX)])
        # It deletes the payload of a follow-up job that does not come into being.
        self.storage.files.allow(lane.worker, [GET_FILE, PUT_FILE, DELETE_FILE], of=[PAYLOADS_PREFIX])
        if config.name == Lane.BULK:
            # Migrations and replays run there.
            self.storage.allow(lane.worker, SCAN)
            if self.config.listing:
                # Replays of a tenant's events, too.
                lane.worker.allow([QUERY], [self.storage.jobs.index_arn(LISTING_INDEX)])
        return lane

    def _publish(self, functions: FunctionFactory) -> Publisher:
        """Dispatches jobs, advances groups and flows, and deletes the payloads of deleted jobs."""
        publisher = Publisher(
            self,
            "Publisher",
            config=self.config,
            code=functions.code,
            jobs=self.storage.jobs,
            lanes=self._lanes,
            environment=self.storage.starting,
        )
        # It also sees which jobs have begun, and starts the nodes of flows.
        self.storage.allow(publisher.function, *ADVANCE, GET_MANY)
        self.storage.allow_app_config(publisher.function)
        self.storage.files.allow(publisher.function, [GET_FILE, PUT_FILE, DELETE_FILE], of=[PAYLOADS_PREFIX])
        return publisher


def function_outputs(scope: Construct, functions: Mapping[str, JobFunction]) -> Mapping[Output, str]:
    """The outputs by which the command line finds the functions of a stack, their logs and their versions."""
    as_json = Stack.of(scope).to_json_string
    return {
        Output.FUNCTIONS: as_json({key: each.function.function_name for key, each in functions.items()}),
        Output.LOG_GROUPS: as_json({key: each.log_group.log_group_name for key, each in functions.items()}),
        Output.VERSIONS: as_json({key: each.function.current_version.version for key, each in functions.items()}),
    }
