"""The address that is trusted, behind proxies and without them."""

import pytest

from shortener.client_address import client_address, network, parsed

SOURCE = "203.0.113.9"


def test_without_trusted_proxies_the_header_is_ignored() -> None:
    assert client_address("198.51.100.1", SOURCE, trusted_hops=0) == SOURCE


def test_the_address_that_a_trusted_proxy_appended_is_used() -> None:
    assert client_address("198.51.100.1", SOURCE, trusted_hops=1) == "198.51.100.1"


def test_an_address_that_the_visitor_forged_is_ignored() -> None:
    assert client_address("8.8.8.8, 198.51.100.1", SOURCE, trusted_hops=1) == "198.51.100.1"


def test_each_trusted_proxy_is_one_step_to_the_left() -> None:
    assert client_address("8.8.8.8, 198.51.100.1, 192.0.2.7", SOURCE, trusted_hops=2) == "198.51.100.1"


def test_the_source_is_not_counted_twice_when_the_gateway_has_appended_it() -> None:
    assert client_address(f"8.8.8.8, 198.51.100.1, {SOURCE}", SOURCE, trusted_hops=1) == "198.51.100.1"
    assert client_address(SOURCE, SOURCE, trusted_hops=1) == SOURCE


def test_behind_fewer_proxies_than_are_trusted_the_leftmost_address_is_used() -> None:
    assert client_address("198.51.100.1", SOURCE, trusted_hops=5) == "198.51.100.1"
    assert client_address("", SOURCE, trusted_hops=5) == SOURCE


def test_empty_entries_in_the_header_are_ignored() -> None:
    assert client_address(" , 198.51.100.1 ,, ", SOURCE, trusted_hops=1) == "198.51.100.1"


@pytest.mark.parametrize("invalid", ["unknown", "198.51.100.1:443", "1", "300.1.1.1", "<script>", "198.51.100.1 x"])
def test_an_invalid_address_is_unknown(invalid: str) -> None:
    assert client_address(invalid, SOURCE, trusted_hops=1) is None


def test_an_address_is_normalized() -> None:
    assert client_address("2001:DB8:0::1", SOURCE, trusted_hops=1) == "2001:db8::1"
    assert client_address("::ffff:198.51.100.1", SOURCE, trusted_hops=1) == "198.51.100.1"


def test_a_missing_empty_or_scoped_address_is_unknown() -> None:
    assert parsed(None) is None
    assert parsed("") is None
    assert parsed("fe80::1%" + "z" * 200) is None


@pytest.mark.parametrize(
    ("address", "kept"),
    [
        ("203.0.113.9", "203.0.113.0"),
        ("203.0.113.0", "203.0.113.0"),
        ("::ffff:203.0.113.9", "203.0.113.0"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1::"),
        ("2001:db8:1::", "2001:db8:1::"),
        ("rubbish", None),
        ("fe80::1%eth0", None),
        (None, None),
    ],
)
def test_the_network_of_an_address_is_a_24_or_a_48(address: str | None, kept: str | None) -> None:
    assert network(address) == kept
