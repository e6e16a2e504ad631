"""The client's address: which one to believe, and the keyed hash that is all that is kept of it."""

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
    """None for what is no address of the Internet. An IPv4 address in IPv6 clothes (`::ffff:1.2.3.4`) is undressed."""
    try:
        address = ip_address((text or "").strip())
    except ValueError:
        return None
    if isinstance(address, IPv4Address):
        return address
    # A zone means something on one machine alone, and may be as long as the visitor likes.
    return None if address.scope_id else address.ipv4_mapped or address


def client_address(forwarded_for: str, source: str, *, trusted_hops: int) -> str | None:
    """The visitor's address, seen through as many proxies as may be believed; None when that is no address.

    `source` is who connected to us, hop 0. Each proxy appends to X-Forwarded-For whoever connected to it, so with n
    trusted proxies the n-th address left of `source` is the visitor's, and all that stands further left is what the
    visitor claims. Behind fewer proxies than that, it is the leftmost one.
    """
    chain: Sequence[str] = [hop.strip() for hop in forwarded_for.split(",") if hop.strip()]
    # API Gateway is a proxy, too, and has appended the source already.
    if not chain or chain[-1] != source:
        chain = [*chain, source]
    address = parsed(chain[max(0, len(chain) - 1 - trusted_hops)])
    return None if address is None else str(address)


def fingerprint(address: str) -> str:
    """A keyed hash of an address: it tells visitors apart, and without the key nobody gets back to the address.

    A bare hash would not do: all IPv4 addresses are hashed in minutes.
    """
    return hmac.new(_key(), address.encode(), hashlib.sha256).hexdigest()


@Lazy
def _key() -> bytes:
    with clients.translated():
        answer = clients.secrets().get_secret_value(SecretId=setting(Env.ADDRESS_KEY_SECRET))
    return answer["SecretString"].encode()
