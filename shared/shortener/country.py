"""The country of an address, from data that comes with the function; nobody is asked over the network."""

import os
from collections.abc import Callable
from ipaddress import IPv4Address
from pathlib import Path
from typing import Final

from shortener.client_address import Address, parsed
from shortener.lazy import Lazy
from shortener.names import Env

#: The country of who has none: private, unassigned and malformed addresses, those that the data does not cover (all of
#: IPv6, in what geoip2fast brings), and no address at all.
UNKNOWN: Final = "??"

#: What geoip2fast says of private and unknown networks.
_NO_COUNTRY: Final = "--"

#: Where relative paths begin: the top of the deployed code.
_TOP: Final = Path(__file__).parents[1]

#: The country's code, or nothing.
_Lookup = Callable[[Address], str | None]


def country_of(address: str | None) -> str:
    """The ISO 3166 code of the country, or `UNKNOWN`."""
    known = parsed(address)
    return (_lookup()(known) if known else None) or UNKNOWN


@Lazy
def _lookup() -> _Lookup:
    """Read the data: 0.1 s and 27 MB, paid by the first click and not by a cold start that has none."""
    database = os.environ.get(Env.GEOIP_DATABASE)
    return _maxmind(_TOP / database) if database else _geoip2fast()


def _geoip2fast() -> _Lookup:
    from geoip2fast.geoip2fast import GEOIP2FAST_DAT_GZ_FILE, GeoIP2Fast  # noqa: PLC0415 - costs as much as the data

    # By its full name, since a file of that name in the working directory would go first. Loading is under our lock
    # because the library keeps its data in its module; lookups only read it.
    data = GeoIP2Fast(geoip2fast_data_file=GEOIP2FAST_DAT_GZ_FILE)

    def lookup(address: Address) -> str | None:
        if not isinstance(address, IPv4Address):
            return None
        code: str = data.lookup(str(address)).country_code
        return None if code == _NO_COUNTRY else code

    return lookup


def _maxmind(path: Path) -> _Lookup:
    import maxminddb  # noqa: PLC0415 - most installations have no such file

    reader = maxminddb.open_database(path)

    def lookup(address: Address) -> str | None:
        try:
            record = reader.get(address)
        except ValueError:  # an IPv6 address, and a database of IPv4
            return None
        # Where the address is used; failing that, where it is registered.
        return _iso_code(record, "country") or _iso_code(record, "registered_country")

    return lookup


def _iso_code(record: object, part: str) -> str | None:
    country = record.get(part) if isinstance(record, dict) else None
    return country.get("iso_code") if isinstance(country, dict) else None
