"""`POST /links` creates a short link."""

from typing import Any

import pytest

from shortener import link_codes
from shortener.names import LINK_KEY
from tests.integration.shortener.conftest import World
from tests.support.faulty_client import Fault

URL = "https://example.com/a?b=c#d"


def test_a_link_without_a_code_receives_a_generated_one(world: World) -> None:
    answer = world.post_link({"url": URL})
    assert answer.status == 201
    made = answer.json()
    assert made["url"] == URL
    assert answer.headers["Location"] == f"/{made['code']}"
    assert made["created_at"].endswith("Z")
    assert [item[LINK_KEY]["S"] for item in world.items(world.links_table)] == [made["code"]]


def test_two_requests_without_a_key_create_two_links(world: World) -> None:
    assert world.post_link({"url": URL}).json()["code"] != world.post_link({"url": URL}).json()["code"]


def test_a_link_is_created_with_the_requested_code(world: World) -> None:
    answer = world.post_link({"url": URL, "code": "spring"})
    assert (answer.status, answer.json()["code"]) == (201, "spring")


@pytest.mark.parametrize("user", ["AROAOWNER", "AROAOTHER"])
def test_a_taken_code_is_refused_to_every_caller_and_to_its_owner(world: World, user: str) -> None:
    world.post_link({"url": URL, "code": "spring"})
    answer = world.post_link({"url": "https://example.com/other", "code": "spring"}, user=user)
    assert answer.status == 409
    assert answer.json()["type"] == "urn:tidemill:problem:code-taken"
    assert world.visit("spring").headers["Location"] == URL


@pytest.mark.parametrize("body", [{"url": URL}, {"url": URL, "code": "spring"}])
def test_the_same_key_and_body_return_the_same_link(world: World, body: dict[str, str]) -> None:
    first = world.post_link(body, key="k")
    again = world.post_link(body, key="k")
    assert (first.status, again.status) == (201, 200)
    assert again.json() == first.json()
    assert again.headers["Idempotent-Replayed"] == "true"
    assert "Idempotent-Replayed" not in first.headers
    assert len(world.items(world.links_table)) == 1


@pytest.mark.parametrize("code", [None, "spring"])
def test_the_same_key_with_another_url_is_refused(world: World, code: str | None) -> None:
    body = {"url": URL} | ({"code": code} if code else {})
    world.post_link(body, key="k")
    answer = world.post_link(body | {"url": "https://example.com/other"}, key="k")
    assert answer.status == 422
    assert answer.json()["type"] == "urn:tidemill:problem:key-reused"
    assert len(world.items(world.links_table)) == 1


def test_another_key_or_caller_is_refused_a_taken_code(world: World) -> None:
    world.post_link({"url": URL, "code": "spring"}, key="k")
    assert world.post_link({"url": URL, "code": "spring"}, key="l").status == 409
    assert world.post_link({"url": URL, "code": "spring"}, key="k", user="AROAOTHER").status == 409


def test_keys_of_different_callers_are_different(world: World) -> None:
    mine, theirs = (world.post_link({"url": URL}, key="k", user=user) for user in ("AROAOWNER", "AROAOTHER"))
    assert (mine.status, theirs.status) == (201, 201)
    assert mine.json()["code"] != theirs.json()["code"]


def test_a_generated_code_that_is_taken_is_replaced_by_the_next(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.post_link({"url": URL, "code": "taken"})
    monkeypatch.setattr(link_codes, "candidates", lambda _owner, _key: iter(["taken", "free"]))
    for key in ("k", None):
        answer = world.post_link({"url": "https://example.com/other"}, key=key)
        assert answer.json()["code"] == "free"
        world.dynamodb.delete_item(TableName=world.links_table, Key={LINK_KEY: {"S": "free"}})


def test_a_write_that_the_sdk_sends_twice_creates_the_link(world: World) -> None:
    world.client.faults = [Fault.SENT_TWICE]
    assert world.post_link({"url": URL, "code": "spring"}).status == 201


def test_an_unavailable_store_is_answered_with_503_and_retry_after(world: World) -> None:
    world.client.faults = [Fault.NOT_SENT]
    answer = world.post_link({"url": URL})
    assert (answer.status, answer.headers["Retry-After"]) == (503, "1")


def test_an_internal_error_is_not_reported_as_a_taken_code(world: World) -> None:
    world.dynamodb.delete_table(TableName=world.links_table)
    answer = world.post_link({"url": URL})
    assert answer.status == 500
    assert "ResourceNotFound" not in answer.text


@pytest.mark.parametrize(
    "url",
    [
        "http://example.com",
        "HTTPS://EXAMPLE.COM/",
        "https://example.com:8443/%C3%A9?q=a+b",
        "https://[2001:db8::1]/",
        "https://192.0.2.1/",
        "https://localhost.example.com/@",
        "https://example.com/" + "x" * 2028,
    ],
)
def test_any_absolute_web_address_is_accepted(world: World, url: str) -> None:
    assert world.post_link({"url": url, "code": "spring"}).status == 201
    assert world.visit("spring").headers["Location"] == url


@pytest.mark.parametrize(
    "url",
    [
        "",
        "example.com",
        "/relative",
        "//example.com",
        "ftp://example.com",
        "javascript:alert(1)",
        "https://",
        "https://:80/",
        "https://example.com:port/",
        "https://example.com:99999/",
        "https://example.com:0/",
        "https://[broken/",
        "https://example.com/a b",
        "https://example.com/é",
        "https://example.com/\r\nSet-Cookie: a=b",
        "https://example.com/" + "x" * 2029,
        "https://good.example@evil.example/",
        "http://127.0.0.1/",
        17,
        None,
    ],
)
def test_an_invalid_or_relative_url_is_refused(world: World, url: Any) -> None:
    answer = world.post_link({"url": url})
    assert answer.status == 422
    assert answer.json()["errors"][0]["pointer"] == "#/url"
    assert world.items(world.links_table) == []


@pytest.mark.parametrize("code", ["", "a b", "a/b", "x" * 65, "é", "a\n", "links", 7])
def test_an_invalid_or_reserved_code_is_refused(world: World, code: Any) -> None:
    answer = world.post_link({"url": URL, "code": code})
    assert answer.status == 422
    assert answer.json()["errors"][0]["pointer"] == "#/code"
    assert world.items(world.links_table) == []


def test_an_unknown_field_is_refused(world: World) -> None:
    assert world.post_link({"url": URL, "owner": "another tenant"}).status == 422


def test_a_caller_without_an_identity_is_refused(world: World) -> None:
    assert world.post_link({"url": URL}, user=None).status == 403
