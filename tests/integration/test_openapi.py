"""The OpenAPI description is true: it lists every route, and generated requests get only described responses."""

import re
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final
from uuid import NAMESPACE_OID, UUID, uuid5

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.config import SchemathesisConfig

from tests.support.api_gateway import OPEN, SIGNED, request, routes, sign_cursors, wsgi
from tests.support.builders import NOW, SECOND, TENANT, brought_to
from tests.support.deployed_functions import Mill
from tidemill import composition
from tidemill.application.ports import Checkpoint
from tidemill.domain.states import State
from tidemill.domain.waiting.signals import NAME_PATTERN
from tidemill.http import openapi
from tidemill.http.list_query import LONGEST_TYPE, ListingQuery
from tidemill.http.openapi.responses import MEANINGS
from tidemill.names import BATCH_PACKAGE, FLOW_PACKAGE, Env
from tidemill.routes import ROUTES

_ROOT: Final = Path(__file__).parents[2]
_DOCUMENT: Final = (_ROOT / "docs" / "reference" / "http.md").read_text()
#: The seed makes the requests the same each time.
_CONFIG: Final = SchemathesisConfig.from_dict(
    {
        "seed": 1,
        "auth": {"openapi": {"signature": {"api_key": SIGNED}}},
        "generation": {"deterministic": True, "database": "none"},
        "checks": {
            # A request that fits its schema may still be refused: an unknown type, a past time, an invalid cursor.
            "positive_data_acceptance": {"expected-statuses": ["2xx", "404", "409", "422"]},
            "negative_data_rejection": {"expected-statuses": ["400", "403", "404", "409", "413", "415", "422"]},
            # API Gateway responds 403 to an unsigned request, and 404 to an unknown route.
            "missing_required_header": {"enabled": False},
            "unsupported_method": {"enabled": False},
        },
        # A batch returns 200 with a refusal per job.
        "operations": [
            {"include-operation-id": "submitJobs", "checks": {"negative_data_rejection": {"enabled": False}}}
        ],
    }
)
_SETTINGS: Final = settings(
    max_examples=20,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(autouse=True)
def jobs(mill: Mill, monkeypatch: pytest.MonkeyPatch) -> None:
    """One job in each state, and three for the listing."""
    sign_cursors(monkeypatch)
    monkeypatch.setenv(Env.JOB_PACKAGES, f"tests.support.jobs,{BATCH_PACKAGE},{FLOW_PACKAGE}")
    store = composition.parts().store
    for state in State:
        brought_to(store, state, id=job_in(state), deadline=NOW + SECOND, parent=job_in(State.SUCCEEDED))
    running = store.get(TENANT, job_in(State.RUNNING))
    assert running is not None
    store.checkpoint(running, Checkpoint(state="[1]", done=1, total=2), now=NOW)
    for _ in range(3):
        mill.accepted()


def job_in(state: State) -> str:
    return str(uuid5(NAMESPACE_OID, state))


api = schemathesis.openapi.from_dict(openapi.description(tokens=False), config=_CONFIG)
api.app = wsgi


@api.hook
def map_path_parameters(_context: object, parameters: Any) -> Any:
    """Replaces random ids with ids of existing jobs. Otherwise every response would be 404."""
    with suppress(KeyError, TypeError, ValueError, AttributeError):
        states = [*State, None]
        state = states[UUID(parameters["id"]).int % len(states)]
        return parameters if state is None else {**parameters, "id": job_in(state)}
    return parameters


@api.hook
def map_body(_context: object, body: Any) -> Any:
    """Replaces random types with a known type. Otherwise every submission would be refused."""
    for job in [body, *(body["jobs"] if isinstance(body, dict) and isinstance(body.get("jobs"), list) else [])]:
        if isinstance(job, dict) and isinstance(job.get("type"), str) and 1 <= len(job["type"]) <= LONGEST_TYPE:
            job["type"] = "test.noop"
    return body


@api.parametrize()
@_SETTINGS
def test_every_answer_matches_the_description(case: schemathesis.Case[Any]) -> None:
    case.call_and_validate()


@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize("path", ["/jobs/{id}", "/jobs/{id}/cancel", "/jobs/{id}/redrive", "/jobs/{id}/retry"])
def test_every_state_of_a_job_matches_the_description(state: State, path: str) -> None:
    (operation,) = api[path].values()
    operation.Case(path_parameters={"id": job_in(state)}, headers={"Authorization": SIGNED}).call_and_validate()


def test_pages_and_their_cursors_match_the_description() -> None:
    operation = api["/jobs"]["GET"]
    first = operation.Case(query={"limit": 1, "type": "test.scripted"}, headers={"Authorization": SIGNED})
    cursor = first.call_and_validate().json()["cursor"]

    second = operation.Case(query={**first.query, "cursor": cursor}, headers={"Authorization": SIGNED})

    assert len(second.call_and_validate().json()["jobs"]) == 1


def test_the_description_is_served_to_unsigned_requests() -> None:
    answer = request("GET", OPEN, iam=None)

    assert (answer.status, answer.body) == (200, openapi.description(tokens=False))
    api.validate()


def test_each_function_serves_the_routes_of_the_table() -> None:
    served = {(method.upper(), path): function.__name__ for (method, path), function in routes().items()}

    assert served == {(each.method, each.path): f"tidemill.entrypoints.{each.function}" for each in ROUTES}


def test_only_public_routes_are_described_as_public() -> None:
    paths = openapi.description(tokens=False)["paths"]

    for route in ROUTES:
        assert ("security" in paths[route.path][route.method.lower()]) is bool(route.public_because)


def test_every_parameter_of_a_listing_is_described() -> None:
    described = {
        parameter["name"] for parameter in openapi.description(tokens=False)["paths"]["/jobs"]["get"]["parameters"]
    }

    assert described == ListingQuery.model_fields.keys()


def test_the_description_names_the_authentication_of_this_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "signature" in request("GET", OPEN).body["components"]["securitySchemes"]

    monkeypatch.setenv(Env.JWT, '{"issuer": "https://issuer.example", "audience": ["jobs"]}')

    described = request("GET", OPEN).body
    assert described["security"] == [{"token": []}]
    assert described["components"]["securitySchemes"]["token"]["bearerFormat"] == "JWT"


def test_every_problem_code_is_in_the_table_and_in_the_description() -> None:
    raised = {
        (HTTPStatus[status].value, code)
        for folder in ("functions", "shared")
        for source in (_ROOT / folder).rglob("*.py")
        for status, code in re.findall(r'HTTPStatus\.([A-Z_]+), "([a-z-]+)"', source.read_text())
    }
    tabled = {(int(status), code) for status, code in re.findall(r"\| (\d{3}) \| `([a-z-]+)` \|", _DOCUMENT)}

    assert tabled == raised
    assert {code for _, code in raised} - MEANINGS.keys() == {"no-such-link", "code-taken", "link-disabled"}
    assert MEANINGS.keys() <= {code for _, code in raised}


def test_every_route_has_its_heading_and_an_example() -> None:
    for method, path in routes():
        section = _DOCUMENT.partition(f"## `{method.upper()} {path}`\n")[2].partition("\n## ")[0]
        example = method.upper() + " " + re.escape(path).replace(re.escape("{id}"), "[0-9a-f-]{36}")
        example = example.replace(re.escape("{name}"), NAME_PATTERN)
        assert re.search(f"^{example}", section, re.MULTILINE), path
