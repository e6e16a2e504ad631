"""Query: `GET /jobs/{id}` shows a job of the caller, `GET /jobs` lists them, `GET /batches/{id}` counts a batch.

`GET /openapi.json` describes the API.
"""

from datetime import datetime
from functools import cache
from http import HTTPStatus
from typing import Any, Final

from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response

from tidemill.application.flows.flow_nodes import NodeDocuments
from tidemill.application.flows.flow_view import page_view
from tidemill.application.job_view import summary
from tidemill.composition import parts
from tidemill.domain.batches.batches import is_batch
from tidemill.dynamodb.batches.listed_members import KINDS
from tidemill.dynamodb.listing import Page
from tidemill.http.caller_identity import tenant
from tidemill.http.job_response import answer, batch_answer, composite_missing, require_flow
from tidemill.http.list_query import Asked, read_first_node, read_query
from tidemill.http.problems import ProblemError
from tidemill.http.router import json_response, resolver, serve
from tidemill.names import Env
from tidemill.settings import setting
from tidemill.system import clock

#: A request counts a batch with so many unfinished members itself. Above, the counts are those of the last look.
_COUNTED_NOW: Final = 1_000


@cache
def _app() -> APIGatewayHttpResolver:
    app = resolver()

    @serve(app, "listJobs")
    def jobs() -> Response[str]:
        owner = tenant(app.current_event)
        if not setting(Env.LISTING):
            detail = "Listing is off in this stage. Deploy with -c listing=on; the index costs one write per job."
            raise ProblemError(HTTPStatus.NOT_FOUND, "listing-off", detail)
        now = clock.now()
        parameters = app.current_event.query_string_parameters
        asked = read_query(parameters, tenant=owner, now=now, cursors=parts().cursors)
        page = _page(asked, now)
        cursor = parts().cursors().write(page.end, bound_to=asked.bound_to) if page.end else None
        unreadable = [{"id": job_id, "error": str(error)} for job_id, error in page.unreadable.items()]
        body = {"jobs": [summary(job) for job in page.jobs], "unreadable": unreadable, "cursor": cursor}
        return json_response(HTTPStatus.OK, body)

    @serve(app, "getJob")
    def job(job_id: str) -> Response[str]:
        owner = tenant(app.current_event)
        return answer(parts().control.find(owner, job_id), parts().payloads)

    @serve(app, "getBatch")
    def batch(job_id: str) -> Response[str]:
        found = parts().control.find(tenant(app.current_event), job_id)
        if found is None or not is_batch(found):
            return batch_answer(None)
        return batch_answer(found, parts().batch_members.brief_look(found, most=_COUNTED_NOW))

    @serve(app, "getFlow")
    def flow(job_id: str) -> Response[str]:
        owner, first = tenant(app.current_event), read_first_node(app.current_event.query_string_parameters)
        found = require_flow(parts().control.find(owner, job_id))
        return json_response(HTTPStatus.OK, page_view(NodeDocuments(found, parts().node_parts), first))

    @serve(app, "describe")
    def description() -> Response[str]:
        # Few requests are for the document, and its models take long to import.
        from tidemill.http import openapi  # noqa: PLC0415

        return json_response(HTTPStatus.OK, openapi.description(tokens=bool(setting(Env.JWT))))

    return app


def _page(asked: Asked, now: datetime) -> Page:
    if asked.whole is None:
        return parts().listing.page(asked.wanted, below=asked.below, limit=asked.limit, now=now)
    kind, job_id = asked.whole
    whole = parts().control.find(asked.wanted.tenant, job_id)
    if whole is None or not KINDS[kind](whole):
        raise composite_missing(kind)
    return parts().member_listing.page(whole, asked.wanted, below=asked.below, limit=asked.limit, now=now)


def handle(event: dict[str, Any], context: Any) -> dict[str, Any]:
    return _app().resolve(event, context)
