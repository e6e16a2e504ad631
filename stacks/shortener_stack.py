"""`ShortenerStack`: the worked example, an application that submits jobs. The pipeline does not know its API."""

from collections.abc import Mapping

from aws_cdk import CfnOutput
from aws_cdk.aws_apigatewayv2 import HttpMethod
from constructs import Construct

from tidemill.cdk.alarm import add_alarms
from tidemill.cdk.alarm_catalogue import function_alarms
from tidemill.cdk.app_stack import AppStack
from tidemill.cdk.config import StageConfig
from tidemill.cdk.http_api import Api
from tidemill.cdk.iam_actions import ACCEPT, GET, PUT, QUERY
from tidemill.cdk.pipeline import PipelineStack
from tidemill.names import Env, Output


class ShortenerStack(AppStack):
    def __init__(self, scope: Construct, *, config: StageConfig, asset: str, pipeline: PipelineStack) -> None:
        super().__init__(
            scope, "Shortener", config=config, asset=asset, description="Tidemill: the worked example, a URL shortener"
        )
        tables, storage = pipeline.shortener, pipeline.storage
        links: Mapping[str, str] = {Env.LINKS_TABLE: tables.links.table_name}

        shorten = self.api_function("shorten", {**links, **self.callers}, handler="functions.shorten.handler.handle")
        shorten.allow([PUT], [tables.links.table_arn])
        redirect = self.api_function(
            "redirect",
            {**links, **storage.submitting, Env.TRUSTED_PROXY_HOPS: str(config.trusted_proxy_hops)},
            handler="functions.redirect.handler.handle",
        )
        redirect.allow([GET], [tables.links.table_arn])
        storage.allow(redirect, *ACCEPT)
        stats = self.api_function(
            "stats",
            {**links, **self.callers, Env.CLICKS_TABLE: tables.clicks.table_name},
            handler="functions.stats.handler.handle",
        )
        stats.allow([GET], [tables.links.table_arn])
        stats.allow([GET, QUERY], [tables.clicks.table_arn])

        api = Api(self, "Api", config=config, name=f"{config.name}-links")
        api.add_route(HttpMethod.POST, "/links", shorten)
        api.add_route(HttpMethod.GET, "/links/{code}/stats", stats)
        api.add_open_route(
            HttpMethod.GET, "/{code}", redirect, reason="A short link is for anybody who has it; it only redirects."
        )

        functions = [shorten, redirect, stats]
        ringing = [alarm for function in functions for alarm in function_alarms(function)]
        add_alarms(self, ringing, config=config, topic=pipeline.alarms)
        CfnOutput(self, Output.SHORTENER_API_ID, value=api.api.api_id)
        CfnOutput(self, Output.SHORTENER_API_URL, value=api.api.api_endpoint)
        CfnOutput(
            self,
            Output.FUNCTIONS,
            value=self.to_json_string({function.verb: function.function.function_name for function in functions}),
        )
