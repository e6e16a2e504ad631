"""A secret key that the stack generates. Only the functions that use it read it."""

from aws_cdk import Acknowledgment, RemovalPolicy, Validations
from aws_cdk import aws_secretsmanager as secretsmanager
from constructs import Construct

from tidemill.cdk.config import StageConfig


def key_secret(
    scope: Construct, id_: str, *, config: StageConfig, use: str, why_not_rotated: str
) -> secretsmanager.Secret:
    secret = secretsmanager.Secret(
        scope,
        id_,
        description=f"{config.name}: {use}",
        generate_secret_string=secretsmanager.SecretStringGenerator(password_length=64, exclude_punctuation=True),
        removal_policy=RemovalPolicy.RETAIN if config.protected else RemovalPolicy.DESTROY,
    )
    Validations.of(secret).acknowledge(Acknowledgment(id="AwsSolutions-SMG4", reason=why_not_rotated))
    return secret
