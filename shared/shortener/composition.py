"""The shortener's part of the composition root. Builds each table object on first use."""

from functools import cache
from typing import TYPE_CHECKING

from shortener.click_records import Records
from shortener.click_rollup import Rollup
from shortener.click_table import Clicks
from shortener.link_table import Links
from shortener.names import Env
from tidemill import setting
from tidemill.aws import clients

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


@cache
def links() -> Links:
    return Links(clients.dynamodb(), table=setting(Env.LINKS_TABLE))


@cache
def clicks() -> Clicks:
    return Clicks(clients.dynamodb(), table=setting(Env.CLICKS_TABLE))


@cache
def rollup() -> Rollup:
    return Rollup(clients.dynamodb(), clicks(), table=setting(Env.CLICKS_TABLE))


@cache
def records() -> Records:
    return Records(clients.dynamodb(), table=setting(Env.CLICKS_TABLE))


def s3() -> "S3Client":
    client: S3Client = clients.s3()
    return client
