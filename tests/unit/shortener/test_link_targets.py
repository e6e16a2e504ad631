"""Which URLs a link may lead to."""

import pytest

from shortener.link_targets import fault


@pytest.mark.parametrize(
    "host",
    [
        "example.com",
        "EXAMPLE.com.",
        "a_b.example",
        "localhost.example.com",
        "notlocalhost",
        "127.0.0.1.example",
        "xn--bcher-kva.example",
        "192.0.2.1",
        "3221225985",
        "128.0.0.1",
        "[2001:db8::1]",
        "[::ffff:192.0.2.1]",
    ],
)
def test_a_link_may_lead_to_any_other_host(host: str) -> None:
    assert fault(f"https://{host}:8443/path?to=127.0.0.1#@") is None


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "LOCALHOST",
        "localhost.",
        "a.localhost",
        "127.0.0.1",
        "127.0.0.1.",
        "127.255.255.254",
        "127.1",
        "127.0.1",
        "2130706433",
        "0x7f000001",
        "0x7F.0x0.0x0.0x1",
        "0177.0.0.01",
        "017700000001",
        "0",
        "0x",
        "0.0.0.0",
        "169.254.169.254",
        "2852039166",
        "0xa9.0xfe.43518",
        "[::1]",
        "[0:0:0:0:0:0:0:1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::ffff:a9fe:a9fe]",
        "[fe80::1]",
    ],
)
def test_a_link_may_not_lead_to_the_visitors_own_machine_or_segment(host: str) -> None:
    assert fault(f"http://{host}:8080/") == "must not lead to the visitor's own machine or network segment"


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1\\.example.com",
        "%6cocalhost",
        "256.1",
        "1.2.3.256",
        "1.2.3.4.5",
        "4294967296",
        "1.08",
        "a..b",
        ".",
        "a.b..",
        "[fe80::1%25eth0]",
        "[::1%25lo]",
        "[v1.example]",
        "[::12345]",
    ],
)
def test_a_host_that_browsers_read_differently_or_refuse_is_refused(host: str) -> None:
    assert fault(f"http://{host}/") is not None


@pytest.mark.parametrize("user", ["user", "user:password", "", ":"])
def test_credentials_are_refused(user: str) -> None:
    assert fault(f"https://{user}@example.com/") == "must not contain a user name or a password"
