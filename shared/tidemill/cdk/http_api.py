"""`Api`: an HTTP API whose routes each declare their authorisation. The throttle and the log cover the whole API."""

import json
from collections.abc import Sequence
from typing import Final, cast

from aws_cdk import Acknowledgment, ArnFormat, Aws, Fn, Stack, Validations
from aws_cdk import aws_apigatewayv2 as apigw
from aws_cdk import aws_apigatewayv2_authorizers as authorizers
from aws_cdk import aws_apigatewayv2_integrations as integrations
from constructs import Construct

from tidemill.cdk.config import StageConfig
from tidemill.cdk.functions.job_function import JobFunction
from tidemill.cdk.functions.log_group import log_group
from tidemill.names import APP

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
    and the throttle limits all callers together, those of each public route apart.
    """

    def __init__(self, scope: Construct, id_: str, *, config: StageConfig, name: str) -> None:
        super().__init__(scope, id_)
        self._callers = (
            authorizers.HttpJwtAuthorizer("Tokens", config.jwt_issuer, jwt_audience=list(config.jwt_audience))
            if config.jwt_issuer
            else authorizers.HttpIamAuthorizer()
        )
        self._config = config
        self._throttled: dict[str, dict[str, int]] = {}
        self.api = apigw.HttpApi(self, "Api", api_name=name, create_default_stage=False)
        self._stage = apigw.HttpStage(
            self,
            "Stage",
            http_api=self.api,
            stage_name="$default",
            auto_deploy=True,
            throttle=apigw.ThrottleSettings(rate_limit=config.api_rate, burst_limit=config.api_burst),
        )
        # Delivery adds each log group to a resource policy of 5,120 characters, unless its name begins like this:
        # https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/AWS-logs-infrastructure-CWL.html
        # The GUID of the stack keeps the name free when a stack is created again beside a retained group.
        guid = Fn.select(2, Fn.split("/", Aws.STACK_ID))
        group = log_group(self, "AccessLogs", config, name=f"/aws/vendedlogs/{APP}/{id_.lower()}-{guid}")
        # Set on the L1 resource: the L2 setting is an interface that Python code would have to implement. The ARN is
        # built from the name: the log group's own ARN ends in `:*`, which API Gateway drops, so drift detection would
        # always report a difference.
        self._cfn_stage.access_log_settings = apigw.CfnStage.AccessLogSettingsProperty(
            destination_arn=Stack.of(self).format_arn(
                service="logs",
                resource="log-group",
                resource_name=group.log_group_name,
                arn_format=ArnFormat.COLON_RESOURCE_NAME,
            ),
            format=json.dumps(ACCESS_LOG),
        )

    @property
    def _cfn_stage(self) -> apigw.CfnStage:
        return cast(apigw.CfnStage, self._stage.node.default_child)

    def add_route(self, method: apigw.HttpMethod, path: str, function: JobFunction) -> None:
        """A route for authenticated callers. Every route that reads or writes jobs is one.

        Callers sign requests (SigV4) and need `execute-api:Invoke`. If the stage has a token issuer, they send a token
        of this issuer for one of the stage's audiences instead, with one of the stage's scopes if it has any.
        """
        self._add_route(method, path, function, self._callers, scopes=self._config.jwt_scopes)

    def add_open_route(self, method: apigw.HttpMethod, path: str, function: JobFunction, *, reason: str) -> None:
        """A public route, with a throttle of its own. `reason` says why it exposes nothing private."""
        route = self._add_route(method, path, function, apigw.HttpNoneAuthorizer())
        self._throttled[f"{method.value} {path}"] = {
            "ThrottlingRateLimit": self._config.open_rate,
            "ThrottlingBurstLimit": self._config.open_burst,
        }
        self._cfn_stage.route_settings = self._throttled
        # API Gateway refuses settings of a route that does not exist yet.
        self._stage.node.add_dependency(route)
        Validations.of(route).acknowledge(Acknowledgment(id="AwsSolutions-APIG4", reason=reason))

    def route_arn(self, method: apigw.HttpMethod, path: str) -> str:
        """What a caller needs `execute-api:Invoke` for.

        https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-access-control-iam.html
        """
        return self.api.arn_for_execute_api(method.value, path, "$default")

    def _add_route(
        self,
        method: apigw.HttpMethod,
        path: str,
        function: JobFunction,
        authorizer: apigw.IHttpRouteAuthorizer,
        *,
        scopes: Sequence[str] = (),
    ) -> apigw.HttpRoute:
        integration = integrations.HttpLambdaIntegration(
            f"{function.verb}-integration",
            function.live,
            payload_format_version=apigw.PayloadFormatVersion.VERSION_2_0,
        )
        (route,) = self.api.add_routes(
            path=path,
            methods=[method],
            integration=integration,
            authorizer=authorizer,
            authorization_scopes=list(scopes) or None,
        )
        return route
