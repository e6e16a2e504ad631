"""The shortener's part of the composition root: its tables, each when first asked for."""

from functools import cache

from shared.adapters import clients
from shared.adapters.composition import setting
from shared.adapters.shortener.clicks import Clicks
from shared.adapters.shortener.links import Links
from shared.adapters.shortener.records import Records
from shared.adapters.shortener.rollup import Rollup
from shared.names import Env


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
