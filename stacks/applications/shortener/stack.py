"""`ShortenerStack`: the API of the worked example, an application that submits jobs."""

from aws_cdk import CfnOutput
from aws_cdk.aws_apigatewayv2 import HttpMethod
from constructs import Construct

from shortener.names import VISITORS, Env, Output
from stacks.app_stack import AppStack
from stacks.applications.shortener.tables import ShortenerTables
from tidemill.cdk.alarms.alarm import add_alarms
from tidemill.cdk.alarms.application_alarms import api_alarms
from tidemill.cdk.config import StageConfig
from tidemill.cdk.functions.function_factory import FunctionFactory
from tidemill.cdk.functions.gradual_deployment import GradualDeployment
from tidemill.cdk.http_api import Api
from tidemill.cdk.iam_actions import GET, PUT, QUERY, READ_KEY, UPDATE
from tidemill.cdk.pipeline import Pipeline, function_outputs


class ShortenerStack(AppStack):
    def __init__(
        self,
        scope: Construct,
        *,
        config: StageConfig,
        asset: str,
        pipeline: Pipeline,
        tables: ShortenerTables,
        trusted_proxy_hops: int,
    ) -> None:
        super().__init__(scope, "Shortener", config=config, description="Tidemill: the worked example, a URL shortener")
        functions = FunctionFactory(self, config=config, asset=asset)
        links = {Env.LINKS_TABLE.value: tables.links.table_name}

        shorten = functions.api_function(
            "shorten", {**links, **functions.callers}, handler="functions.shorten.handler.handle"
        )
        shorten.allow([PUT, UPDATE], [tables.links.table_arn])
        redirect = functions.api_function(
            "redirect",
            {
                **links,
                Env.TRUSTED_PROXY_HOPS: str(trusted_proxy_hops),
                Env.ADDRESS_KEY_SECRET: tables.address_key.secret_arn,
            },
            handler="functions.redirect.handler.handle",
            is_open=True,
        )
        redirect.allow([GET], [tables.links.table_arn])
        redirect.allow([READ_KEY], [tables.address_key.secret_arn])
        pipeline.allow_submitting(redirect, tenant=VISITORS)
        stats = functions.api_function(
            "stats",
            {**links, **functions.callers, Env.CLICKS_TABLE: tables.clicks.table_name},
            handler="functions.stats.handler.handle",
        )
        stats.allow([GET], [tables.links.table_arn])
        stats.allow([GET, QUERY], [tables.clicks.table_arn])

        api = Api(self, "Api", config=config, name=f"{config.name}-links")
        api.add_route(HttpMethod.POST, "/links", shorten)
        api.add_route(HttpMethod.DELETE, "/links/{code}", shorten)
        api.add_route(HttpMethod.GET, "/links/{code}/stats", stats)
        api.add_open_route(
            HttpMethod.GET, "/{code}", redirect, reason="A short link is public. The route only redirects."
        )

        made = [shorten, redirect, stats]
        add_alarms(self, api_alarms(api, made, of="shortener"), config=config, topics=pipeline.topics)
        if config.gradual_deployment:
            GradualDeployment(self, "GradualLinks", functions=made, alarm_names=pipeline.shift_alarms)
        CfnOutput(self, Output.API_ID, value=api.api.api_id)
        CfnOutput(self, Output.API_URL, value=api.api.api_endpoint)
        for output, value in function_outputs(self, {function.verb: function for function in made}).items():
            CfnOutput(self, output, value=value)
