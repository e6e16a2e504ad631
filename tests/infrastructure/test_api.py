"""Every job route is authenticated, and every API is throttled and logged."""

import json

import pytest

from stacks.stages import STAGES
from tests.infrastructure.conftest import Resource, Synthesise, Synthesised, verb_of
from tidemill.names import Env

#: `GET /{code}` redirects every visitor with a short link. It submits a job, but the visitor cannot choose which. The
#: description of the API holds nothing private.
OPEN = {"GET /{code}", "GET /openapi.json"}
JOBS = {
    "POST /jobs": "submit",
    "POST /jobs/batch": "submit",
    "POST /events": "submit",
    "POST /batches": "submit",
    "POST /flows": "submit",
    "POST /flows/{id}/nodes": "submit",
    "GET /health": "submit",
    "GET /jobs": "query",
    "GET /jobs/{id}": "query",
    "POST /jobs/{id}/cancel": "control",
    "POST /jobs/{id}/redrive": "control",
    "POST /jobs/{id}/retry": "control",
    "POST /jobs/{id}/signals/{name}": "control",
    "POST /jobs/{id}/undo": "control",
    "GET /batches/{id}": "query",
    "POST /batches/{id}/close": "control",
    "GET /flows/{id}": "query",
    "POST /flows/{id}/cancel": "control",
    "POST /batches/{id}/cancel": "control",
    "GET /openapi.json": "query",
}
TOKENS = {"jwt_issuer": "https://issuer.example/pool", "jwt_audience": "mill,other"}


def _routes(app: Synthesised) -> dict[str, Resource]:
    return {route["RouteKey"]: route for _, route in app.of_type("AWS::ApiGatewayV2::Route")}


def _verb(app: Synthesised, route: Resource) -> str:
    integration = route["Target"]["Fn::Join"][1][-1]["Ref"]
    uri = dict(app.of_type("AWS::ApiGatewayV2::Integration"))[integration]["IntegrationUri"]
    function = dict(app.of_type("AWS::Lambda::Function"))[app.behind(uri)]
    return verb_of(function)


def test_every_route_except_the_open_ones_requires_a_signature(dev: Synthesised) -> None:
    routes = {key: route["AuthorizationType"] for key, route in _routes(dev).items()}
    assert routes.keys() == {*JOBS, "POST /links", "DELETE /links/{code}", "GET /links/{code}/stats", *OPEN}
    assert {route for route, authorization in routes.items() if authorization != "AWS_IAM"} == OPEN


def test_each_route_leads_to_the_function_that_answers_it(dev: Synthesised) -> None:
    routes = _routes(dev)
    assert {key: _verb(dev, routes[key]) for key in JOBS} == JOBS


def test_with_an_issuer_every_route_except_the_open_ones_requires_its_tokens(synthesise: Synthesise) -> None:
    app = synthesise(stage="dev", **TOKENS)
    routes = {key: route["AuthorizationType"] for key, route in _routes(app).items()}
    assert {route for route, authorization in routes.items() if authorization != "JWT"} == OPEN
    authorizers = [authorizer for _, authorizer in app.of_type("AWS::ApiGatewayV2::Authorizer")]
    assert len(authorizers) == 2
    for authorizer in authorizers:
        assert authorizer["AuthorizerType"] == "JWT"
        assert authorizer["IdentitySource"] == ["$request.header.Authorization"]
        assert authorizer["JwtConfiguration"] == {
            "Issuer": "https://issuer.example/pool",
            "Audience": ["mill", "other"],
        }


def test_functions_know_the_issuer_of_the_tokens(synthesise: Synthesise, dev: Synthesised) -> None:
    settings = {
        function["Environment"]["Variables"].get(Env.JWT)
        for _, function in synthesise(stage="dev", **TOKENS).of_type("AWS::Lambda::Function")
    } - {None}
    (only,) = settings
    assert json.loads(only) == {"issuer": "https://issuer.example/pool", "audience": ["mill", "other"]}
    assert {
        function["Environment"]["Variables"].get(Env.JWT) for _, function in dev.of_type("AWS::Lambda::Function")
    } == {None, ""}


def test_every_stage_is_throttled_and_logged_to_a_group_of_the_stack(dev: Synthesised) -> None:
    groups = dict(dev.of_type("AWS::Logs::LogGroup"))
    stages = list(dev.of_type("AWS::ApiGatewayV2::Stage"))
    assert len(stages) == len(list(dev.of_type("AWS::ApiGatewayV2::Api"))) == 2
    for _, stage in stages:
        assert stage["DefaultRouteSettings"]["ThrottlingRateLimit"] == dev.config.api_rate
        assert stage["DefaultRouteSettings"]["ThrottlingBurstLimit"] == dev.config.api_burst
        destination = stage["AccessLogSettings"]["DestinationArn"]["Fn::Join"][1][-1]
        assert destination["Ref"] in groups


@pytest.mark.parametrize("stage", ["dev", "prod"])
def test_public_routes_have_a_lower_throttle_of_their_own(synthesise: Synthesise, stage: str) -> None:
    app = synthesise(stage=stage)
    limits = {"ThrottlingRateLimit": app.config.open_rate, "ThrottlingBurstLimit": app.config.open_burst}
    assert app.config.open_rate < app.config.api_rate
    assert app.config.open_burst < app.config.api_burst
    settings = [each["RouteSettings"] for _, each in app.of_type("AWS::ApiGatewayV2::Stage")]
    assert {route: limit for routes in settings for route, limit in routes.items()} == dict.fromkeys(OPEN, limits)


def test_a_stage_is_created_after_the_routes_that_it_has_settings_for(dev: Synthesised) -> None:
    routes = {id_: route["RouteKey"] for id_, route in dev.of_type("AWS::ApiGatewayV2::Route")}
    for _, stage in dev.everything():
        if stage["Type"] == "AWS::ApiGatewayV2::Stage":
            first = {routes[id_] for id_ in stage["DependsOn"] if id_ in routes}
            assert first == set(stage["Properties"]["RouteSettings"])


@pytest.mark.parametrize("stage", ["dev", "prod"])
def test_both_apis_stay_below_the_throttle_of_an_account_in_the_smallest_regions(stage: str) -> None:
    """2,500 requests a second, and a burst of 1,250.

    https://docs.aws.amazon.com/apigateway/latest/developerguide/limits.html
    """
    config = STAGES[stage]()
    assert 2 * config.api_rate <= 2500
    assert 2 * config.api_burst <= 1250


def test_access_logs_use_no_room_in_the_resource_policy_of_the_account(dev: Synthesised) -> None:
    groups = dict(dev.of_type("AWS::Logs::LogGroup"))
    for _, stage in dev.of_type("AWS::ApiGatewayV2::Stage"):
        destination = stage["AccessLogSettings"]["DestinationArn"]["Fn::Join"][1][-1]
        _, (start, guid) = groups[destination["Ref"]]["LogGroupName"]["Fn::Join"]
        assert start.startswith("/aws/vendedlogs/tidemill/")
        # A stack that is created again does not meet the retained group of the first.
        assert "AWS::StackId" in json.dumps(guid)


def test_with_scopes_every_authenticated_route_requires_one_of_them(synthesise: Synthesise, dev: Synthesised) -> None:
    app = synthesise(stage="dev", **TOKENS, jwt_scopes="jobs/write,admin")
    scopes = {key: route.get("AuthorizationScopes") for key, route in _routes(app).items()}
    assert {route for route, required in scopes.items() if required is None} == OPEN
    assert [required for required in scopes.values() if required not in (None, ["jobs/write", "admin"])] == []
    assert not any("AuthorizationScopes" in route for route in _routes(dev).values())


def test_access_logs_do_not_contain_the_address_of_a_client(dev: Synthesised) -> None:
    for _, stage in dev.of_type("AWS::ApiGatewayV2::Stage"):
        form = json.loads(stage["AccessLogSettings"]["Format"])
        assert form["request_id"] == "$context.requestId"
        assert not any("sourceIp" in variable for variable in form.values())


def test_functions_time_out_before_the_api_does(dev: Synthesised) -> None:
    behind = {
        dev.behind(integration["IntegrationUri"]) for _, integration in dev.of_type("AWS::ApiGatewayV2::Integration")
    }
    functions = dict(dev.of_type("AWS::Lambda::Function"))
    assert all(functions[id_]["Timeout"] < 30 for id_ in behind)


def test_requests_have_payload_version_2(dev: Synthesised) -> None:
    for _, integration in dev.of_type("AWS::ApiGatewayV2::Integration"):
        assert integration["PayloadFormatVersion"] == "2.0"
