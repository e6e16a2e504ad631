"""The country of an address, from the registries or from a configured database."""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from shortener import country
from shortener.country import UNKNOWN, country_of
from shortener.names import Env
from tests.unit.shortener import mmdb


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Make this test read the data again, and drop the data afterwards."""
    monkeypatch.delenv(Env.GEOIP_DATABASE, raising=False)
    country._lookup.forget()
    yield monkeypatch
    country._lookup.forget()


@pytest.fixture
def with_database(fresh: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    def configure(record: dict[str, Any]) -> None:
        path = tmp_path / "test.mmdb"
        mmdb.write(path, record)
        fresh.setenv(Env.GEOIP_DATABASE, str(path))

    return configure


@pytest.mark.parametrize(
    ("address", "country"),
    [("83.149.9.216", "RU"), ("8.8.8.8", "US"), ("::ffff:83.149.9.216", "RU"), ("2001:4860:4860::8888", "US")],
)
def test_an_address_has_the_country_of_its_network(address: str, country: str) -> None:
    assert country_of(address) == country


@pytest.mark.parametrize(
    "address",
    [
        None,
        "",
        "rubbish",
        "8.8.8.8 ; drop",
        "134744072",
        "10.0.0.1",
        "127.0.0.1",
        "100.64.0.1",
        "224.0.0.1",
        "0.0.0.0",
        "255.255.255.255",
        "::1",
        "fe80::1",
    ],
)
def test_an_address_without_a_country_is_unknown(address: str | None) -> None:
    assert country_of(address) == UNKNOWN


def test_several_threads_read_the_data_once(fresh: pytest.MonkeyPatch) -> None:
    loads: list[str] = []
    load = country._registries

    def counted() -> Any:
        loads.append("load")
        return load()

    fresh.setattr(country, "_registries", counted)
    with ThreadPoolExecutor(8) as pool:
        countries = set(pool.map(country_of, ["83.149.9.216"] * 32))
    assert countries == {"RU"}
    assert loads == ["load"]


def test_a_configured_database_replaces_the_default_data(with_database: Any) -> None:
    with_database({"country": {"iso_code": "NZ"}})
    assert country_of("8.8.8.8") == "NZ"


def test_the_path_of_a_configured_database_is_relative_to_the_top_of_the_code(
    fresh: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    mmdb.write(tmp_path / "test.mmdb", {"country": {"iso_code": "NZ"}})
    fresh.setattr(country, "_TOP", tmp_path)
    fresh.setenv(Env.GEOIP_DATABASE, "test.mmdb")
    fresh.chdir(os.sep)
    assert country_of("8.8.8.8") == "NZ"


def test_the_registered_country_is_used_if_no_other_is_known(with_database: Any) -> None:
    with_database({"registered_country": {"iso_code": "NZ"}})
    assert country_of("8.8.8.8") == "NZ"


@pytest.mark.parametrize("record", [{}, {"country": {}}, {"country": "NZ"}])
def test_a_record_without_a_country_is_unknown(with_database: Any, record: dict[str, Any]) -> None:
    with_database(record)
    assert country_of("8.8.8.8") == UNKNOWN


@pytest.mark.parametrize("address", ["200.1.1.1", "2001:4860:4860::8888"])
def test_an_address_outside_a_configured_database_is_unknown(with_database: Any, address: str) -> None:
    with_database({"country": {"iso_code": "NZ"}})
    assert country_of(address) == UNKNOWN


def test_a_missing_configured_database_is_an_error(fresh: pytest.MonkeyPatch) -> None:
    fresh.setenv(Env.GEOIP_DATABASE, "missing.mmdb")
    with pytest.raises(FileNotFoundError):
        country_of("8.8.8.8")
