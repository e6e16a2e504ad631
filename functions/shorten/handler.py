"""Shorten: `POST /links` creates a short link, and `DELETE /links/{code}` disables one. One write each."""

from datetime import datetime
from functools import cache
from http import HTTPStatus
from typing import Annotated, Any, Final

from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response
from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic_core import PydanticCustomError

from shortener import clock, composition, link_codes, link_targets
from shortener.link_table import Link
from shortener.shorten import CodeTakenError, shorten
from tidemill.http import REPLAYED, ProblemError, idempotency_key, json_response, read_body, resolver, tenant

#: Some browsers and proxies refuse longer URLs.
LONGEST_URL_CHARACTERS: Final = 2048


def _allowed(url: str) -> str:
    if fault := link_targets.fault(url):
        raise PydanticCustomError("url", fault)
    return url


def _not_reserved(code: str) -> str:
    if code in link_codes.RESERVED:
        raise PydanticCustomError("code", "is reserved for a path of this API; choose another")
    return code


class Body(BaseModel):
    """The request body of `POST /links`."""

    model_config = ConfigDict(extra="forbid", strict=True)

    url: Annotated[str, AfterValidator(_allowed)] = Field(max_length=LONGEST_URL_CHARACTERS)
    code: Annotated[str, Field(pattern=link_codes.PATTERN), AfterValidator(_not_reserved)] | None = None


@cache
def _app() -> APIGatewayHttpResolver:
    app = resolver()

    @app.post("/links")
    def post() -> Response[str]:
        event = app.current_event
        owner = tenant(event)
        key = idempotency_key(event)
        body = read_body(event, Body)
        try:
            shortened = shorten(
                composition.links(),
                owner=owner,
                url=body.url,
                code=body.code,
                key=key,
                trace=event.request_context.request_id,
                now=clock.now(),
            )
        except CodeTakenError as error:
            raise ProblemError(HTTPStatus.CONFLICT, "code-taken", str(error)) from error
        status = HTTPStatus.OK if shortened.replayed else HTTPStatus.CREATED
        headers = {"Location": f"/{shortened.link.code}"}
        if shortened.replayed:
            headers |= REPLAYED
        return json_response(status, _view(shortened.link), headers=headers)

    @app.delete("/links/<code>")
    def delete(code: str) -> Response[str]:
        owner = tenant(app.current_event)
        link = composition.links().disable(code, owner=owner, now=clock.now()) if link_codes.is_code(code) else None
        if link is None:
            # The same answer for both: this path does not reveal the links of other tenants.
            raise ProblemError(HTTPStatus.NOT_FOUND, "no-such-link", "no link of yours has this code")
        return json_response(HTTPStatus.OK, _view(link))

    return app


def _view(link: Link) -> dict[str, str]:
    view = {"code": link.code, "url": link.url, "created_at": _time(link.created_at)}
    return view if link.disabled_at is None else view | {"disabled_at": _time(link.disabled_at)}


def _time(value: datetime) -> str:
    return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def handle(event: dict[str, Any], context: Any) -> dict[str, Any]:
    return _app().resolve(event, context)
