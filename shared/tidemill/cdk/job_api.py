"""`JobApi`: the API of jobs and the functions behind it, each with the rights that it needs."""

from collections.abc import Mapping, Sequence

from aws_cdk.aws_apigatewayv2 import HttpMethod

from tidemill.cdk.functions.function_factory import FunctionFactory
from tidemill.cdk.functions.job_function import JobFunction
from tidemill.cdk.functions.key_secret import key_secret
from tidemill.cdk.http_api import Api
from tidemill.cdk.iam_actions import (
    ACCEPT,
    DELETE_FILE,
    GET,
    GET_FILE,
    GET_MANY,
    INSERT_BY_STATEMENT,
    PUT,
    PUT_FILE,
    QUERY,
    READ_KEY,
    UPDATE,
)
from tidemill.cdk.lanes.lane import LaneConstruct, first_message_lanes, lane_urls
from tidemill.cdk.storage.storage import Storage
from tidemill.names import LISTING_INDEX, PAYLOADS_PREFIX, Env
from tidemill.routes import ROUTES


class JobApi:
    """Created in the scope of `functions`."""

    def __init__(self, functions: FunctionFactory, *, storage: Storage, lanes: Sequence[LaneConstruct]) -> None:
        self._functions = functions
        self._config = functions.config
        self._storage = storage
        submit, query, control = self._submit(lanes), self._query(), self._control()
        self.submit = submit
        self.functions: Sequence[JobFunction] = (submit, query, control)
        self.api = Api(functions.scope, "Api", config=self._config, name=f"{self._config.name}-jobs")
        functions_by_verb = {function.verb: function for function in self.functions}
        for route in ROUTES:
            method, function = HttpMethod(route.method), functions_by_verb[route.function]
            if route.public_because:
                self.api.add_open_route(method, route.path, function, reason=route.public_because)
            else:
                self.api.add_route(method, route.path, function)

    def _submit(self, lanes: Sequence[LaneConstruct]) -> JobFunction:
        hinted = [lane for lane in lanes if lane.config.first_message_at_once]
        urls: Mapping[str, str] = {Env.LANES: lane_urls(self._functions.scope, hinted)} if hinted else {}
        jobs = {**self._storage.writing_files, **self._storage.governing, **urls, **first_message_lanes(self._config)}
        submit = self._functions.api_function("submit", {**jobs, **self._functions.callers})
        if hinted:
            submit.allow(["sqs:SendMessage"], [lane.queue.queue_arn for lane in hinted])
        # It updates the counts of tenants with a quota and the pages of batches, and marks jobs that others supersede.
        self._storage.allow(submit, *ACCEPT, INSERT_BY_STATEMENT, GET_MANY, UPDATE)
        self._storage.allow_app_config(submit)
        self._storage.files.allow(submit, [GET_FILE, PUT_FILE, DELETE_FILE], of=[PAYLOADS_PREFIX])
        return submit

    def _query(self) -> JobFunction:
        query = self._functions.api_function("query", {**self._storage.loading, **self._functions.callers})
        # It counts the members of a batch, and shows the nodes of a flow.
        self._storage.allow(query, GET, GET_MANY)
        self._storage.files.allow(query, [GET_FILE], of=[PAYLOADS_PREFIX])
        if self._config.listing:
            self._let_list(query)
        return query

    def _let_list(self, query: JobFunction) -> None:
        key = key_secret(
            self._functions.scope,
            "CursorKey",
            config=self._config,
            use="signs the cursors of listings",
            why_not_rotated="An operator rotates the key, without an outage: docs/operations/operate.md describes it.",
        )
        query.function.add_environment(Env.CURSOR_KEY_SECRET, key.secret_arn)
        query.allow([READ_KEY], [key.secret_arn])
        query.allow([QUERY], [self._storage.jobs.index_arn(LISTING_INDEX)])

    def _control(self) -> JobFunction:
        """Changes jobs, batches and flows for their tenants.

        A redrive, and an undo, may write the order of the group of the job.
        """
        control = self._functions.api_function("control", {**self._storage.loading, **self._functions.callers})
        # It reads the nodes that were added to a flow.
        self._storage.allow(control, GET, GET_MANY, PUT, UPDATE)
        # An undo is refused while its job is paused so.
        self._storage.allow_app_config(control)
        self._storage.files.allow(control, [GET_FILE], of=[PAYLOADS_PREFIX])
        return control
