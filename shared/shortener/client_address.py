"""The client's address: which address to trust, and its keyed hash, which is the only part that is kept."""

import hashlib
import hmac
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address

from shortener.lazy import Lazy
from shortener.names import Env
from tidemill import setting
from tidemill.aws import clients

Address = IPv4Address | IPv6Address


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


def fingerprint(address: str) -> str:
    """A keyed hash of an address. It distinguishes visitors, and cannot be reversed without the key.

    A hash without a key is not enough: hashing all IPv4 addresses takes minutes.
    """
    return hmac.new(_key(), address.encode(), hashlib.sha256).hexdigest()


@Lazy
def _key() -> bytes:
    with clients.translated():
        answer = clients.secrets().get_secret_value(SecretId=setting(Env.ADDRESS_KEY_SECRET))
    return answer["SecretString"].encode()
