"""The country of an address, from data inside the function's package, without a network call."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

from shortener.client_address import Address, parsed
from shortener.lazy import Lazy
from shortener.names import Env

#: The country of a missing, private, unassigned or malformed address, and of an address that the data does not cover.
UNKNOWN: Final = "??"

#: Relative paths start here: the top folder of the deployed code.
_TOP: Final = Path(__file__).parents[1]

#: Returns the country's code, or None.
_Lookup = Callable[[Address], str | None]


def country_of(address: str | None) -> str:
    """The ISO 3166 code of the country, or `UNKNOWN`."""
    known = parsed(address)
    return (_lookup()(known) if known else None) or UNKNOWN


@Lazy
def _lookup() -> _Lookup:
    """Load the data. The first click pays for it; a cold start without a click does not."""
    database = os.environ.get(Env.GEOIP_DATABASE)
    return _maxmind(_TOP / database) if database else _registries()


def _registries() -> _Lookup:
    """The country to which an Internet registry assigned the network, which need not be the one that uses it."""
    from iptocc import country_code  # noqa: PLC0415 - only a worker that counts clicks uses it

    def lookup(address: Address) -> str | None:
        return country_code(str(address))

    return lookup


def _maxmind(path: Path) -> _Lookup:
    import maxminddb  # noqa: PLC0415 - most installations do not use this database

    reader = maxminddb.open_database(path)

    def lookup(address: Address) -> str | None:
        try:
            record = reader.get(address)
        except ValueError:  # an IPv6 address in a database of IPv4 addresses
            return None
        # Prefer the country that uses the address to the country that registered it.
        return _iso_code(record, "country") or _iso_code(record, "registered_country")

    return lookup


def _iso_code(record: object, part: str) -> str | None:
    country = record.get(part) if isinstance(record, dict) else None
    return country.get("iso_code") if isinstance(country, dict) else None
