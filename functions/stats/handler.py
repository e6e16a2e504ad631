"""Stats: `GET /links/{code}/stats` shows the statistics of a link to its owner."""

from functools import cache
from http import HTTPStatus
from typing import Any, Final

from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response

from shortener import composition
from shortener.click_tally import Trait
from shortener.link_codes import is_code
from tidemill.http import ProblemError, json_response, resolver, tenant

_PLURALS: Final = {
    Trait.COUNTRY: "countries",
    Trait.BROWSER: "browsers",
    Trait.SYSTEM: "systems",
    Trait.DEVICE: "devices",
}


@cache
def _app() -> APIGatewayHttpResolver:
    app = resolver()

    @app.get("/links/<code>/stats")
    def get(code: str) -> Response[str]:
        owner = tenant(app.current_event)
        link = composition.links().get(code) if is_code(code) else None
        if link is None or link.owner != owner:
            # The same answer for both: this path does not reveal the links of other tenants.
            raise ProblemError(HTTPStatus.NOT_FOUND, "no-such-link", "no link of yours has this code")
        tally = composition.clicks().tally(code)
        # The most frequent name first; names with the same count are in alphabetical order.
        by_trait = {
            _PLURALS[trait]: dict(sorted(names.items(), key=lambda entry: (-entry[1], entry[0])))
            for trait, names in tally.names.items()
        }
        body = {
            "code": code,
            "url": link.url,
            "clicks": tally.clicks,
            "bots": tally.bots,
            "days": dict(sorted(tally.days.items())),
            **by_trait,
        }
        return json_response(HTTPStatus.OK, body)

    return app


def handle(event: dict[str, Any], context: Any) -> dict[str, Any]:
    return _app().resolve(event, context)
