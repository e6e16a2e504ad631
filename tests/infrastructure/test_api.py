"""No job route is open, and every API is bounded and logged."""

import json

from tests.infrastructure.conftest import Synthesised

#: `GET /{code}` redirects whoever has a short link; it submits a job, but none that the caller could choose.
OPEN = {"GET /{code}"}


def test_every_route_but_the_redirect_asks_for_a_signature(dev: Synthesised) -> None:
    routes = {route["RouteKey"]: route["AuthorizationType"] for _, route in dev.of_type("AWS::ApiGatewayV2::Route")}
    assert routes.keys() == {"POST /jobs", "GET /jobs/{id}", "POST /links", "GET /links/{code}/stats", *OPEN}
    assert {route for route, authorization in routes.items() if authorization != "AWS_IAM"} == OPEN


def test_every_stage_is_throttled_and_logged_to_a_group_that_ends(dev: Synthesised) -> None:
    groups = dict(dev.of_type("AWS::Logs::LogGroup"))
    stages = list(dev.of_type("AWS::ApiGatewayV2::Stage"))
    assert len(stages) == len(list(dev.of_type("AWS::ApiGatewayV2::Api"))) == 2
    for _, stage in stages:
        assert stage["DefaultRouteSettings"]["ThrottlingRateLimit"] == dev.config.api_rate
        assert stage["DefaultRouteSettings"]["ThrottlingBurstLimit"] == dev.config.api_burst
        destination = stage["AccessLogSettings"]["DestinationArn"]["Fn::Join"][1][-1]
        assert destination["Ref"] in groups


def test_access_logs_hold_no_client_address(dev: Synthesised) -> None:
    for _, stage in dev.of_type("AWS::ApiGatewayV2::Stage"):
        form = json.loads(stage["AccessLogSettings"]["Format"])
        assert form["request_id"] == "$context.requestId"
        assert not any("sourceIp" in variable for variable in form.values())


def test_functions_answer_before_the_api_stops_waiting(dev: Synthesised) -> None:
    behind = {
        integration["IntegrationUri"]["Fn::GetAtt"][0]
        for _, integration in dev.of_type("AWS::ApiGatewayV2::Integration")
    }
    functions = dict(dev.of_type("AWS::Lambda::Function"))
    assert all(functions[id_]["Timeout"] < 30 for id_ in behind)


def test_requests_come_in_payload_version_2(dev: Synthesised) -> None:
    for _, integration in dev.of_type("AWS::ApiGatewayV2::Integration"):
        assert integration["PayloadFormatVersion"] == "2.0"
