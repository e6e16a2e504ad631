"""`POST /jobs` makes one job with one conditional write, `POST /jobs/batch` up to a hundred, `POST /events` one event.

`POST /batches` opens a batch, which jobs of later requests join. `POST /flows` starts a flow.
`GET /health` is here too: this function accepts jobs, so it has what the checks need.
"""

import json
from collections.abc import Collection, Sequence
from contextlib import nullcontext, suppress
from functools import cache
from http import HTTPStatus
from typing import Any, Final

from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response

from tidemill.application.job_view import batch_view, payload_of, summary
from tidemill.application.submission.new_jobs import Accepted
from tidemill.aws import clients
from tidemill.composition import parts
from tidemill.domain.errors import (
    Fault,
    InvalidPayloadError,
    PayloadTooLargeError,
    StoreUnavailableError,
    UnknownJobTypeError,
    UnloadedJobTypeError,
)
from tidemill.domain.events.events import Event
from tidemill.domain.submission.submission import Submission
from tidemill.http.caller_identity import tenant
from tidemill.http.job_response import accepted_status, new_job_answer, require_flow
from tidemill.http.problems import ProblemError, as_problem
from tidemill.http.request import idempotency_key, read_body, read_object
from tidemill.http.request_trace import caller_trace
from tidemill.http.router import REPLAYED, json_response, resolver, serve
from tidemill.http.submission_form import (
    BatchedForm,
    BatchForm,
    EventForm,
    FlowForm,
    NodesForm,
    OpeningForm,
    SubmissionForm,
    read_form,
)
from tidemill.names import LARGEST_BATCH_BODY_BYTES
from tidemill.telemetry.outcome_log import first_message_not_sent, submission_deferred
from tidemill.telemetry.tracing import tracing

#: The writes of a batch start within this time. Each write may wait some seconds for a slow store, and a function that
#: times out answers for none of its jobs.
_LAST_START_SECONDS: Final = 3.0


def _add_flows(app: APIGatewayHttpResolver) -> None:
    @serve(app, "startFlow")
    def start_a_flow() -> Response[str]:
        from tidemill.application.flows.flow_view import flow_view  # noqa: PLC0415 - most requests submit a job
        from tidemill.application.flows.flows import start_flow  # noqa: PLC0415 - most requests submit a job

        event = app.current_event
        owner = tenant(event)
        key = idempotency_key(event)
        body = read_form(FlowForm, read_object(event, limit_bytes=LARGEST_BATCH_BODY_BYTES), lambda _form: [])
        with tracing().submit(caller_trace(event)) as trace:
            accepted = start_flow(body.flow(key=key), parts().api_submit, tenant=owner, trace=trace)
        _write_telemetry([accepted])
        # Others may have been added since it was accepted.
        size = parts().api_flow_growth.size(accepted.job) if accepted.replayed else len(body.nodes)
        headers = {"Location": f"/flows/{accepted.job.id}", **(REPLAYED if accepted.replayed else {})}
        return json_response(accepted_status(accepted), flow_view(accepted.job, size), headers=headers)

    @serve(app, "addNodes")
    def add_nodes(job_id: str) -> Response[str]:
        from tidemill.application.flows.flow_view import flow_view  # noqa: PLC0415 - most requests submit a job

        event = app.current_event
        owner = tenant(event)
        body = read_form(NodesForm, read_object(event), lambda _form: [])
        flows = parts().api_flow_growth
        flow = require_flow(flows.add_nodes(owner, job_id, [form.node() for form in body.nodes]))
        parts().telemetry().controlled("extended", flow)
        return json_response(HTTPStatus.OK, flow_view(flow, flows.size(flow)))


def _add_jobs(app: APIGatewayHttpResolver) -> None:
    @serve(app, "submitJob")
    def submit() -> Response[str]:
        event = app.current_event
        owner = tenant(event)
        key = idempotency_key(event)
        body = read_form(SubmissionForm, read_object(event), lambda form: _faults_of(form.submission(key=key)))
        submission = body.submission(key=key)
        with tracing().submit(caller_trace(event)) as trace:
            accepted = parts().api_submit(submission, tenant=owner, trace=trace)
        _write_telemetry([accepted])
        _send_first([accepted])
        # This request holds the payload of a new job. Only a replayed job needs a read.
        payload = payload_of(accepted.job, parts().payloads) if accepted.replayed else json.dumps(body.payload)
        return new_job_answer(accepted, payload)

    @serve(app, "submitJobs")
    def submit_batch() -> Response[str]:
        from tidemill.application.submission.submit_batch import submit_all  # noqa: PLC0415 - most requests submit a job

        event = app.current_event
        owner = tenant(event)
        if idempotency_key(event) is not None:
            detail = "A batch takes no Idempotency-Key header. Give each job its own idempotency_key."
            raise ProblemError(HTTPStatus.BAD_REQUEST, "invalid-key", detail)
        body = read_body(event, BatchForm, limit_bytes=LARGEST_BATCH_BODY_BYTES)
        with tracing().submit(caller_trace(event)) as trace:
            answers = submit_all(
                parts().api_submit,
                [_submission_of(job) for job in body.jobs],
                tenant=owner,
                trace=trace,
                overlap=clients.POOL_SIZE,
                seconds=_LAST_START_SECONDS,
                together=parts().insert_together,
            )
        accepted = [answer for answer in answers if isinstance(answer, Accepted)]
        problems = {
            index: as_problem(answer, under=_pointer(index), request_id=event.request_context.request_id)
            for index, answer in enumerate(answers)
            if not isinstance(answer, Accepted)
        }
        _write_telemetry(accepted, problems.values())
        _send_first(accepted)
        # Without payloads: a hundred of them could exceed the size of a Lambda response.
        shown = [
            {"status": accepted_status(answer), "job": summary(answer.job)}
            if isinstance(answer, Accepted)
            else problems[index].batch_answer()
            for index, answer in enumerate(answers)
        ]
        return json_response(HTTPStatus.OK, {"jobs": shown})


def _add_events(app: APIGatewayHttpResolver) -> None:
    @serve(app, "publishEvent")
    def publish_event() -> Response[str]:
        from tidemill.application.events.events import publish  # noqa: PLC0415 - most requests submit a job

        event = app.current_event
        owner = tenant(event)
        key = idempotency_key(event)
        body = read_form(EventForm, read_object(event), lambda form: _faults_of_event(form.event(key=key)))
        with tracing().submit(caller_trace(event)) as trace:
            accepted = publish(body.event(key=key), parts().api_submit, tenant=owner, trace=trace)
        _write_telemetry([accepted])
        # Its payload names the consumers, which the request does not. The event is accepted, even if it cannot be read.
        payload = None
        with nullcontext() if accepted.replayed else suppress(StoreUnavailableError):
            payload = payload_of(accepted.job, parts().payloads)
        return new_job_answer(accepted, payload)


def _add_batches(app: APIGatewayHttpResolver) -> None:
    @serve(app, "openBatch")
    def open_a_batch() -> Response[str]:
        from tidemill.application.batches.batches import open_batch  # noqa: PLC0415 - most requests submit a job

        event = app.current_event
        owner = tenant(event)
        key = idempotency_key(event)
        body = read_form(OpeningForm, read_object(event), lambda _form: [])
        with tracing().submit(caller_trace(event)) as trace:
            accepted = open_batch(body.opened(key=key), parts().api_submit, tenant=owner, trace=trace)
        _write_telemetry([accepted])
        headers = {"Location": f"/batches/{accepted.job.id}", **(REPLAYED if accepted.replayed else {})}
        return json_response(accepted_status(accepted), batch_view(accepted.job), headers=headers)


def _add_health(app: APIGatewayHttpResolver) -> None:
    @serve(app, "health")
    def health() -> Response[str]:
        found = parts().health.read()
        body = {
            "ok": found.ok,
            "checked_at": found.checked_at.isoformat(timespec="milliseconds"),
            "checks": [
                {"name": each.name, "ok": each.ok, "age_seconds": each.age and each.age.total_seconds()}
                for each in found.checks
            ],
        }
        return json_response(HTTPStatus.OK if found.ok else HTTPStatus.SERVICE_UNAVAILABLE, body)


@cache
def _app() -> APIGatewayHttpResolver:
    app = resolver(_count_failure)
    _add_flows(app)
    _add_jobs(app)
    _add_events(app)
    _add_batches(app)
    _add_health(app)
    return app


def handle(event: dict[str, Any], context: Any) -> dict[str, Any]:
    with tracing().invocation("submit", context):
        return _app().resolve(event, context)


def _submission_of(job: Any) -> Submission | InvalidPayloadError:
    try:
        form = read_form(BatchedForm, job, lambda form: _faults_of(form.submission(key=form.idempotency_key)))
    except InvalidPayloadError as refused:
        return refused
    return form.submission(key=form.idempotency_key)


def _faults_of(submission: Submission) -> Sequence[Fault]:
    """The faults that the checks of `Submit` add to those of the form."""
    try:
        # Nothing is written, so the tenant does not matter.
        parts().api_submit.prepare(submission, tenant="", trace="")
    except InvalidPayloadError as refused:
        return refused.faults
    except UnloadedJobTypeError:
        # Nothing is known of its payload.
        return []
    except UnknownJobTypeError as refused:
        return [Fault("/type", str(refused))]
    except PayloadTooLargeError as refused:
        return [Fault("/payload", str(refused))]
    return []


def _faults_of_event(event: Event) -> Sequence[Fault]:
    """The faults that the checks of the event add to those of the form."""
    from tidemill.application.events.events import publication  # noqa: PLC0415 - most requests submit a job

    try:
        publication(event, parts().api_submit.job_types)
    except InvalidPayloadError as refused:
        return refused.faults
    except UnloadedJobTypeError:
        # Nothing is known of its event types.
        return []
    return []


def _pointer(index: int) -> str:
    return f"/jobs/{index}"


def _send_first(accepted: Sequence[Accepted]) -> None:
    new = [each.job for each in accepted if not each.replayed]
    if (first_messages := parts().first_messages) and (error := first_messages.send(new)):
        first_message_not_sent(error)


def _write_telemetry(accepted: Sequence[Accepted], problems: Collection[ProblemError] = ()) -> None:
    """Call it in the thread of the invocation: telemetry is not thread-safe."""
    telemetry = parts().telemetry()
    telemetry.accepted(*accepted, over_http=True)
    for each in accepted:
        if each.deferred:
            submission_deferred(each.job)
    telemetry.items_refused(sum(problem.status < HTTPStatus.INTERNAL_SERVER_ERROR for problem in problems))
    telemetry.submissions_failed(sum(problem.is_failure for problem in problems))
    telemetry.flush()


def _count_failure(problem: ProblemError) -> None:
    """Count the failure of a whole request: one submission, or a batch of which nothing is known."""
    if problem.is_failure:
        _write_telemetry([], [problem])
