"""Which URLs a link may lead to. Pure functions.

A link is public and carries the name of this service. So it may not lead to the visitor's own machine or network
segment, nor show one host and go to another.
"""

import re
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from typing import Final
from urllib.parse import urlsplit

#: The characters of a host name. A browser decodes `%`, and reads a backslash as a slash, so that the host would be
#: another one than the one checked here: https://url.spec.whatwg.org/#host-parsing
_NAME: Final = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*")
#: The last label makes a browser read the host as an IPv4 address: https://url.spec.whatwg.org/#ends-in-a-number-checker
_NUMBER: Final = re.compile(r"[0-9]+|0x[0-9a-f]*")
#: Names of the visitor's own machine: https://www.rfc-editor.org/rfc/rfc6761#section-6.3
_OWN_NAME: Final = "localhost"
_INVALID: Final = "must have a valid host: a name, an IPv4 address, or an IPv6 address in brackets"
_PRIVATE: Final = "must not lead to the visitor's own machine or network segment"


def fault(url: str) -> str | None:
    """The reason why a link may not lead to `url`; None if it may. `url` is valid in a `Location` header unchanged."""
    if not all("!" <= character <= "~" for character in url):
        return "must be visible ASCII; percent-encode other characters"
    try:
        parts = urlsplit(url)
        host = parts.hostname
        absolute = parts.scheme in {"http", "https"} and host and parts.port != 0
    except ValueError:
        absolute = host = None
    if not absolute or not host:
        return "must be absolute and begin with http:// or https://"
    if "@" in parts.netloc:
        return "must not contain a user name or a password"
    return _fault_of_ipv6(host) if "[" in parts.netloc else _fault_of_name(host.removesuffix("."))


def _fault_of_ipv6(host: str) -> str | None:
    try:
        address = IPv6Address(host)
    except AddressValueError:
        return _INVALID
    if address.scope_id:
        return _INVALID
    return _fault_of_address(address.ipv4_mapped or address)


def _fault_of_name(host: str) -> str | None:
    if not _NAME.fullmatch(host):
        return _INVALID
    if host == _OWN_NAME or host.endswith(f".{_OWN_NAME}"):
        return _PRIVATE
    if not _NUMBER.fullmatch(host.rpartition(".")[2]):
        return None
    address = _ipv4(host)
    return _INVALID if address is None else _fault_of_address(address)


def _ipv4(host: str) -> IPv4Address | None:
    """An IPv4 address as browsers read it: one to four numbers, each decimal, octal (`0177`) or hexadecimal (`0x7f`).

    The last number fills the rest of the address, so `127.1` and `2130706433` are 127.0.0.1:
    https://url.spec.whatwg.org/#concept-ipv4-parser
    """
    try:
        *first, last = [_number(part) for part in host.split(".")]
    except ValueError:
        return None
    room = 4 - len(first)
    if room < 1 or any(number > 255 for number in first) or last >= 256**room:  # noqa: PLR2004 - a byte
        return None
    return IPv4Address(sum(number << 8 * (3 - index) for index, number in enumerate(first)) + last)


def _number(text: str) -> int:
    if text.startswith("0x"):
        return int(text[2:] or "0", 16)
    return int(text, 8 if len(text) > 1 and text.startswith("0") else 10)


def _fault_of_address(address: IPv4Address | IPv6Address) -> str | None:
    # Systems connect to themselves at the unspecified address.
    return _PRIVATE if address.is_loopback or address.is_link_local or address.is_unspecified else None
