"""The client's address: which address to trust, and the parts of it that may be kept: its network and a keyed hash."""

import hashlib
import hmac
import json
import threading
from collections.abc import Sequence
from datetime import date
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Final

from shortener.names import Env
from tidemill import setting
from tidemill.aws.secret_keys import key_versions

Address = IPv4Address | IPv6Address

#: The bits of an address that are kept. An operator of networks routes no smaller part to another country, and a /48 is
#: what one site receives: https://www.rfc-editor.org/rfc/rfc6177
_NETWORK_BITS: Final = {4: 24, 6: 48}


def parsed(text: str | None) -> Address | None:
    """None if the text is not an IP address. An IPv4-mapped address (`::ffff:1.2.3.4`) becomes its IPv4 address."""
    try:
        address = ip_address((text or "").strip())
    except ValueError:
        return None
    if isinstance(address, IPv4Address):
        return address
    # A zone has a meaning on one machine only, and its length is unbounded.
    return None if address.scope_id else address.ipv4_mapped or address


def client_address(forwarded_for: str, source: str, *, trusted_hops: int) -> str | None:
    """The visitor's address behind `trusted_hops` trusted proxies; None if the text at that position is not an address.

    `source` is the address that connected to the API, hop 0. Each proxy appends the address of its own client to
    X-Forwarded-For. With n trusted proxies, the n-th address left of `source` is therefore the visitor's; the visitor
    can forge every address further left. If the header names fewer proxies, the leftmost address is used.
    """
    chain: Sequence[str] = [hop.strip() for hop in forwarded_for.split(",") if hop.strip()]
    # API Gateway is also a proxy and appends the source itself. Do not count it twice.
    if not chain or chain[-1] != source:
        chain = [*chain, source]
    address = parsed(chain[max(0, len(chain) - 1 - trusted_hops)])
    return None if address is None else str(address)


def network(address: str | None) -> str | None:
    """The first address of the network of `address`: `203.0.113.0` for 203.0.113.9. None if it is not an address."""
    known = parsed(address)
    if known is None:
        return None
    return str(ip_network((known, _NETWORK_BITS[known.version]), strict=False).network_address)


def fingerprint(address: str, *, code: str, day: date) -> str:
    """A keyed hash of an address. It tells the visitors of one link on one day apart, and cannot be reversed.

    A hash without a key is not enough: hashing all IPv4 addresses takes minutes. With link and day in it, no two hashes
    show that one person followed two links, or came back.
    """
    return hmac.new(_key(day), json.dumps([str(day), code, address]).encode(), hashlib.sha256).hexdigest()[:32]


class _DailyKey:
    """The key of a day: the newest that was there before the day began.

    So all processes use the same key on the day of a rotation, and no visitor counts twice.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._keys: dict[date, bytes] = {}

    def __call__(self, day: date) -> bytes:
        with self._lock:
            if day not in self._keys:
                versions = key_versions(setting(Env.ADDRESS_KEY_SECRET))
                key = next((one.value for one in versions if one.created_at.date() < day), versions[-1].value)
                # Around midnight two days take turns.
                self._keys = dict([*self._keys.items()][-1:]) | {day: key}
            return self._keys[day]

    def forget(self) -> None:
        with self._lock:
            self._keys.clear()


_key: Final = _DailyKey()
