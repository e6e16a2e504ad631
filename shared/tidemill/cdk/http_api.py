"""`Api`: an HTTP API whose routes each declare their authorisation. The throttle and the log cover the whole API."""

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
#: Without the address of the client: the shortener never stores an address in plain text.
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

    An HTTP API has neither request validation nor a throttle for each client. So the functions validate their input,
    and the throttle limits all callers together.
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
        # Set on the L1 resource: the L2 setting is an interface that Python code would have to implement. The ARN is
        # built from the name: the log group's own ARN ends in `:*`, which API Gateway drops, so drift detection would
        # always report a difference.
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
        """A route for authenticated callers. Every route that reads or writes jobs is one.

        Callers sign requests (SigV4) and need `execute-api:Invoke`. If the stage has a token issuer, they send a token
        of this issuer for one of the stage's audiences instead.
        """
        self._add_route(method, path, function, self._callers)

    def add_open_route(self, method: apigw.HttpMethod, path: str, function: JobFunction, *, reason: str) -> None:
        """A public route. `reason` says why it exposes nothing private."""
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
