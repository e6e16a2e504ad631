"""Control: `POST /jobs/{id}/cancel` ends a job of the caller, and `/redrive` requeues a dead one.

`POST /batches/{id}/close` closes a batch, and `/cancel` cancels it with its jobs, as `/flows/{id}/cancel` does a flow.
`POST /jobs/{id}/signals/{name}` gives a job the data that it waits for, and `/undo` submits the job that undoes one.
"""

from collections.abc import Callable
from functools import cache
from http import HTTPStatus
from typing import Any

from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response

from tidemill.application.batches.batches import cancel_batch, close_batch
from tidemill.application.flows.flow_view import flow_view
from tidemill.composition import parts
from tidemill.domain.errors import NotAllowedNowError, SignalRefusedError, UndoRefusedError
from tidemill.domain.job import Job
from tidemill.http.caller_identity import tenant
from tidemill.http.job_response import answer, batch_answer, require_flow
from tidemill.http.problems import ProblemError
from tidemill.http.request import Nothing, read_body, read_value
from tidemill.http.router import json_response, resolver, serve
from tidemill.system import clock

Show = Callable[[Job | None], Response[str]]


def _shown(job: Job | None) -> Response[str]:
    return answer(job, parts().payloads)


def _flow(job: Job | None) -> Response[str]:
    flow = require_flow(job)
    return json_response(HTTPStatus.OK, flow_view(flow, parts().flow_control.size(flow)))


@cache
def _app() -> APIGatewayHttpResolver:
    app = resolver()

    @serve(app, "cancelJob")
    def cancel(job_id: str) -> Response[str]:
        return controlled("cancelled", lambda owner: parts().control.cancel(owner, job_id))

    @serve(app, "redriveJob", "retryJob")
    def redrive(job_id: str) -> Response[str]:
        return controlled("redriven", lambda owner: parts().control.redrive(owner, job_id))

    @serve(app, "undoJob")
    def undo(job_id: str) -> Response[str]:
        return controlled("undone", lambda owner: _undoing(owner, job_id))

    @serve(app, "closeBatch")
    def close(job_id: str) -> Response[str]:
        return controlled("closed", lambda owner: _closed(owner, job_id), show=batch_answer)

    @serve(app, "cancelBatch")
    def cancel_composite(job_id: str) -> Response[str]:
        return controlled("cancelled", lambda owner: cancel_batch(parts().control, owner, job_id), show=batch_answer)

    @serve(app, "cancelFlow")
    def cancel_flow(job_id: str) -> Response[str]:
        return controlled("cancelled", lambda owner: parts().flow_control.cancel(owner, job_id), show=_flow)

    @serve(app, "signalJob")
    def signal(job_id: str, name: str) -> Response[str]:
        owner = tenant(app.current_event)
        data = read_value(app.current_event)
        return _answered("signalled", lambda: parts().control.signal(owner, job_id, name, data))

    def controlled(what: str, act: Callable[[str], Job | None], show: Show = _shown) -> Response[str]:
        owner = tenant(app.current_event)
        if app.current_event.body:
            read_body(app.current_event, Nothing)
        return _answered(what, lambda: act(owner), show)

    return app


def _answered(what: str, act: Callable[[], Job | None], show: Show = _shown) -> Response[str]:
    try:
        job = act()
    except (NotAllowedNowError, SignalRefusedError, UndoRefusedError) as error:
        raise ProblemError(HTTPStatus.CONFLICT, "not-allowed-now", str(error)) from error
    if job is not None:
        parts().telemetry().controlled(what, job)
    return show(job)


def _closed(owner: str, batch_id: str) -> Job | None:
    return close_batch(parts().control, owner, batch_id, now=clock.now())


def _undoing(owner: str, job_id: str) -> Job | None:
    accepted = parts().undoer(owner, job_id, admit=parts().pause_admission)
    return accepted.job if accepted else None


def handle(event: dict[str, Any], context: Any) -> dict[str, Any]:
    return _app().resolve(event, context)
