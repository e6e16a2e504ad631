"""Each function has exactly the environment variables that it needs."""

import pytest

from shortener.names import Env as Shortener
from tests.infrastructure.conftest import Synthesise, Synthesised, functions_by_key
from tidemill.names import Env

STORING: set[str] = {Env.JOBS_TABLE, Env.RETENTION_DAYS, Env.LISTING, Env.INDEX_SHARDS}
LOADING: set[str] = STORING | {Env.FILES_BUCKET}
SUBMITTING: set[str] = LOADING | {Env.JOB_PACKAGES}
WORKING = SUBMITTING | {Env.LANES, Env.JOB_TIMEOUT_SECONDS, Env.CANARY}
ENRICHING: set[str] = {Shortener.CLICKS_TABLE, Shortener.GEOIP_DATABASE}
#: The environment variables of each function, except its stage and those of Powertools.
VARIABLES: dict[str, set[str]] = {
    "submit": SUBMITTING | {Env.JWT, Env.CANARY, Env.LANES, Env.FIRST_MESSAGE_LANES},
    "query": LOADING | {Env.JWT, Env.CURSOR_KEY_SECRET},
    "control": LOADING | {Env.JWT},
    "publish": LOADING | {Env.LANES, Env.FIRST_MESSAGE_LANES},
    "wake": SUBMITTING,
    "tick": SUBMITTING,
    "canary": {Env.API_ID, Env.API_URL},
    "reconcile": LOADING | {Env.LANES, Env.RECONCILE_LIMIT_SECONDS, Env.RECONCILE_READ_UNITS, Env.STACK},
    "shorten": {Shortener.LINKS_TABLE, Env.JWT},
    "redirect": SUBMITTING | {Shortener.LINKS_TABLE, Shortener.TRUSTED_PROXY_HOPS, Shortener.ADDRESS_KEY_SECRET},
    "stats": {Shortener.LINKS_TABLE, Shortener.CLICKS_TABLE, Env.JWT},
    "work-critical": WORKING | {Env.FIRST_MESSAGE_LANES},
    "work": WORKING,
    "work-bulk": WORKING | ENRICHING | {Shortener.LINKS_TABLE, Shortener.EXPORTS_BUCKET},
}


@pytest.mark.parametrize("key", VARIABLES)
def test_a_function_has_exactly_the_variables_that_it_needs(dev: Synthesised, key: str) -> None:
    variables = {
        name for name in functions_by_key(dev)[key]["Environment"]["Variables"] if not name.startswith("POWERTOOLS_")
    }
    assert variables == VARIABLES[key] | {Env.STAGE, Env.CODE_VERSION}


def test_every_function_that_writes_jobs_knows_the_number_of_index_shards(synthesise: Synthesise) -> None:
    for function in functions_by_key(synthesise(stage="dev", index_shards="8")).values():
        variables = function["Environment"]["Variables"]
        assert variables.get(Env.INDEX_SHARDS) == ("8" if Env.JOBS_TABLE in variables else None)


def test_with_listing_every_function_that_writes_jobs_writes_its_index(dev: Synthesised) -> None:
    for function in functions_by_key(dev).values():
        variables = function["Environment"]["Variables"]
        assert (Env.JOBS_TABLE in variables) == (variables.get(Env.LISTING) == "true")


def test_the_target_of_the_foreground_reaches_the_functions_that_govern_or_are_governed(
    synthesise: Synthesise, dev: Synthesised
) -> None:
    functions = functions_by_key(synthesise(stage="dev", foreground_target_seconds="1.5"))
    targets = {key: each["Environment"]["Variables"].get(Env.FOREGROUND_TARGET) for key, each in functions.items()}

    governed = {"submit", "wake", "work-critical", "work", "work-bulk"}
    assert targets == {key: "1.5" if key in governed else None for key in functions}
    assert all(Env.FOREGROUND_TARGET not in each["Environment"]["Variables"] for each in functions_by_key(dev).values())
