"""`AppConfig`: the copy of the runtime configuration that the functions read, where the stage asks for it."""

import json
from typing import Final

from aws_cdk import ArnFormat, RemovalPolicy, Stack
from aws_cdk import aws_appconfig as appconfig
from constructs import Construct

from tidemill.cdk.config import StageConfig
from tidemill.cdk.functions.job_function import JobFunction

#: AppConfig refuses another document, so a wrong one reaches no function.
_SCHEMA: Final = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "type": "object",
    "required": ["table", "version", "document"],
    "properties": {
        "table": {"type": "string"},
        "version": {"type": "integer", "minimum": 0},
        "document": {"type": "object", "properties": {"settings": {"type": "object"}}},
    },
}


class AppConfig(Construct):
    """It begins without a document, and no deployment of the stack writes one: operators do.

    Its resources outlive the stack, since operators have added versions that the stack does not know.
    """

    def __init__(self, scope: Construct, id_: str, *, config: StageConfig) -> None:
        super().__init__(scope, id_)
        application = appconfig.CfnApplication(self, "Application", name=config.name)
        self._application = application.ref
        environment = appconfig.CfnEnvironment(self, "Environment", application_id=application.ref, name=config.stage)
        self._environment = environment.ref
        profile = appconfig.CfnConfigurationProfile(
            self,
            "Profile",
            application_id=application.ref,
            name="runtime-configuration",
            location_uri="hosted",
            validators=[
                appconfig.CfnConfigurationProfile.ValidatorsProperty(type="JSON_SCHEMA", content=json.dumps(_SCHEMA))
            ],
        )
        self._profile = profile.ref
        strategy = appconfig.CfnDeploymentStrategy(
            self,
            "AtOnce",
            name=f"{config.name}-at-once",
            deployment_duration_in_minutes=0,
            final_bake_time_in_minutes=0,
            growth_factor=100,
            replicate_to="NONE",
        )
        for resource in (application, environment, profile, strategy):
            resource.apply_removal_policy(RemovalPolicy.RETAIN)
        #: For `Env.APP_CONFIG`.
        self.place = Stack.of(self).to_json_string(
            {
                "application": application.ref,
                "environment": environment.ref,
                "profile": profile.ref,
                "strategy": strategy.ref,
            }
        )

    def allow(self, function: JobFunction) -> None:
        """Allow a function to read the copy.

        https://docs.aws.amazon.com/service-authorization/latest/reference/list_awsappconfig.html
        """
        path = f"{self._application}/environment/{self._environment}/configuration/{self._profile}"
        arn = Stack.of(self).format_arn(
            service="appconfig",
            resource="application",
            resource_name=path,
            arn_format=ArnFormat.SLASH_RESOURCE_NAME,
        )
        function.allow(["appconfig:StartConfigurationSession", "appconfig:GetLatestConfiguration"], [arn])
