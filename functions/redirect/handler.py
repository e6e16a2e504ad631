"""Redirect: `GET /{code}` redirects the visitor with one read, and submits the click with one write.

The link matters more to a visitor than the click, so the redirect also answers if the click cannot be written. Such a
click was never accepted. It is logged as an error and counted in `Metric.NOT_ACCEPTED`, so that the gap in the
statistics is known. If the link cannot be read, the answer is 503.

The address, the user agent and the URL of the referrer end here: `Click` keeps a coarse part of each.
"""

from functools import cache
from http import HTTPStatus
from typing import Any

from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response
from aws_lambda_powertools.utilities.data_classes import APIGatewayProxyEventV2

from functions.jobs.click_enrich import click_enrich
from shortener import clock
from shortener import composition as shortener
from shortener.click import CLICK, LONGEST_HEADER_CHARACTERS, Click
from shortener.client_address import client_address, fingerprint
from shortener.link_codes import is_code
from shortener.names import VISITORS, Env
from tidemill import KeyReusedError, Submission, TransactionConflictError, setting
from tidemill.client import Tidemill
from tidemill.http import REPLAYED, ProblemError, caller_trace, idempotency_key, resolver
from tidemill.telemetry import Telemetry, logger


@cache
def _app() -> APIGatewayHttpResolver:
    app = resolver()

    @app.get("/<code>")
    def get(code: str) -> Response[str]:
        event = app.current_event
        key = idempotency_key(event)
        link = shortener.links().get(code) if is_code(code) else None
        if link is None:
            raise ProblemError(HTTPStatus.NOT_FOUND, "no-such-link", "no link has this code")
        if link.disabled_at:
            raise ProblemError(HTTPStatus.GONE, "link-disabled", "the owner of this link disabled it")
        headers = {"Location": link.url, "Cache-Control": "no-store"}
        if _submit(_click(event, code), key=key, trace=caller_trace(event)):
            headers |= REPLAYED
        return Response(HTTPStatus.FOUND, body="", headers=headers)

    return app


@cache
def _visitors() -> Tidemill:
    return Tidemill.here(tenant=VISITORS)


def _submit(click: Click, *, key: str | None, trace: str) -> bool:
    """Submit the click. Returns True if it was accepted before."""
    telemetry = Telemetry.here()
    try:
        accepted = _visitors().submit(
            # A code cannot contain a space, so two links never share the key of a job.
            Submission(type=CLICK, payload=click.model_dump(), key=None if key is None else f"{click.code} {key}"),
            trace=trace,
        )
        telemetry.accepted(accepted)
    except (KeyReusedError, TransactionConflictError):
        # A click with this key exists, of another visitor or day, or a worker is settling it at this moment.
        return True
    except Exception as error:  # noqa: BLE001 - the link matters more to the visitor, and the metric reports the gap
        telemetry.not_accepted(click_enrich, error)
        return False
    finally:
        telemetry.flush()
    return accepted.replayed


def _click(event: APIGatewayProxyEventV2, code: str) -> Click:
    address = client_address(
        event.headers.get("x-forwarded-for", ""),
        event.request_context.http.source_ip,
        trusted_hops=int(setting(Env.TRUSTED_PROXY_HOPS)),
    )
    return Click(
        code=code,
        address=address,
        visitor=_visitor(address, code),
        user_agent=_header(event, "user-agent"),
        referrer=_header(event, "referer"),
    )


def _visitor(address: str | None, code: str) -> str | None:
    """None also while the key of the hash cannot be read: a click without a visitor is better than no click."""
    try:
        return None if address is None else fingerprint(address, code=code, day=clock.now().date())
    except Exception as error:  # noqa: BLE001 - as in `_submit`
        logger().warning("visitor not identified", extra={"error": str(error)})
        return None


def _header(event: APIGatewayProxyEventV2, name: str) -> str:
    """A header as a job can hold it: cut to length, with unpaired surrogates (which JSON allows) replaced."""
    value = event.headers.get(name, "").strip()
    return value.encode(errors="replace").decode()[:LONGEST_HEADER_CHARACTERS]


def handle(event: dict[str, Any], context: Any) -> dict[str, Any]:
    return _app().resolve(event, context)
