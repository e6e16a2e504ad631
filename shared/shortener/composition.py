"""The shortener's part of the composition root: its tables, each when first asked for."""

from functools import cache

from shortener.click_records import Records
from shortener.click_rollup import Rollup
from shortener.click_table import Clicks
from shortener.link_table import Links
from tidemill.aws import clients
from tidemill.composition import setting
from tidemill.names import Env


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
