"""`Api`: an HTTP API whose every route says who may call it. Throttled and logged as a whole."""

import json
from typing import Final, cast

from aws_cdk import Acknowledgment, ArnFormat, Stack, Validations
from aws_cdk import aws_apigatewayv2 as apigw
from aws_cdk import aws_apigatewayv2_authorizers as authorizers
from aws_cdk import aws_apigatewayv2_integrations as integrations
from constructs import Construct

from tidemill.cdk.config import StageConfig
from tidemill.cdk.job_function import JobFunction
from tidemill.cdk.log_group import log_group

#: https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-logging-variables.html
#: No address of the client: the shortener promises not to keep any in clear.
ACCESS_LOG: Final = {
    "request_id": "$context.requestId",
    "time": "$context.requestTime",
    "route": "$context.routeKey",
    "status": "$context.status",
    "bytes": "$context.responseLength",
    "latency_ms": "$context.responseLatency",
    "integration_latency_ms": "$context.integrationLatency",
    "integration_error": "$context.integrationErrorMessage",
    "error": "$context.error.message",
    "caller": "$context.identity.userArn",
    "subject": "$context.authorizer.claims.sub",
}


class Api(Construct):
    """One HTTP API on its default stage.

    An HTTP API has neither request validation nor a throttle for each client, so the functions check what they get and
    the throttle is a bound on all callers together.
    """

    def __init__(self, scope: Construct, id_: str, *, config: StageConfig, name: str) -> None:
        super().__init__(scope, id_)
        self._callers = (
            authorizers.HttpJwtAuthorizer("Tokens", config.jwt_issuer, jwt_audience=list(config.jwt_audience))
            if config.jwt_issuer
            else authorizers.HttpIamAuthorizer()
        )
        self.api = apigw.HttpApi(self, "Api", api_name=name, create_default_stage=False)
        stage = apigw.HttpStage(
            self,
            "Stage",
            http_api=self.api,
            stage_name="$default",
            auto_deploy=True,
            throttle=apigw.ThrottleSettings(rate_limit=config.api_rate, burst_limit=config.api_burst),
        )
        group = log_group(self, "AccessLogs", config)
        # On the resource: in Python the construct's own setting would be an interface to implement. And by name: the
        # log group's ARN ends in a wildcard that API Gateway does not keep, which would be seen as drift for ever.
        cast(apigw.CfnStage, stage.node.default_child).access_log_settings = apigw.CfnStage.AccessLogSettingsProperty(
            destination_arn=Stack.of(self).format_arn(
                service="logs",
                resource="log-group",
                resource_name=group.log_group_name,
                arn_format=ArnFormat.COLON_RESOURCE_NAME,
            ),
            format=json.dumps(ACCESS_LOG),
        )

    def add_route(self, method: apigw.HttpMethod, path: str, function: JobFunction) -> None:
        """A route for callers who are known. All that has to do with jobs is such.

        They sign (SigV4) and IAM lets them `execute-api:Invoke` it; or, where the stage has an issuer, they bring a
        token of it that is meant for us.
        """
        self._add_route(method, path, function, self._callers)

    def add_open_route(self, method: apigw.HttpMethod, path: str, function: JobFunction, *, reason: str) -> None:
        """A route for anybody. `reason` is why nothing private can be had or done through it."""
        route = self._add_route(method, path, function, apigw.HttpNoneAuthorizer())
        Validations.of(route).acknowledge(Acknowledgment(id="AwsSolutions-APIG4", reason=reason))

    def _add_route(
        self, method: apigw.HttpMethod, path: str, function: JobFunction, authorizer: apigw.IHttpRouteAuthorizer
    ) -> apigw.HttpRoute:
        integration = integrations.HttpLambdaIntegration(
            f"{function.verb}-integration",
            function.function,
            payload_format_version=apigw.PayloadFormatVersion.VERSION_2_0,
        )
        (route,) = self.api.add_routes(path=path, methods=[method], integration=integration, authorizer=authorizer)
        return route
