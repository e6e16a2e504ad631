"""The responses of the API. A refused request stores nothing."""

import base64
import json
from typing import Any

import pytest

from tests.support.builders import RETENTION, SECOND
from tests.support.deployed_functions import Mill
from tests.support.faulty_client import Fault
from tests.support.http_events import Answer, call
from tidemill import composition
from tidemill.application.submission.validation import DEEPEST_NESTING
from tidemill.domain.states import State
from tidemill.dynamodb.document import SCHEMA_VERSION
from tidemill.entrypoints import control, query, submit
from tidemill.names import LARGEST_BODY_BYTES

BODY = '{"type":"test.scripted","payload":{"n":1}}'


def _is_problem(answer: Answer, status: int, code: str) -> None:
    assert answer.status == status, answer
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert answer.body["type"] == f"urn:tidemill:problem:{code}"
    assert answer.body["status"] == status
    assert answer.body["title"]
    assert answer.body["detail"]
    assert "Traceback" not in json.dumps(answer.body)


def _pointers(answer: Answer) -> list[str]:
    return [error["pointer"] for error in answer.body["errors"]]


def test_a_submission_is_accepted_and_served_at_its_location(mill: Mill) -> None:
    answer = mill.post_text(BODY)

    assert answer.status == 202
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.headers["Location"] == f"/jobs/{answer.body['id']}"
    assert "Idempotent-Replayed" not in answer.headers
    assert (answer.body["state"], answer.body["type"], answer.body["payload"]) == ("queued", "test.scripted", {"n": 1})
    assert call(query, "GET", answer.headers["Location"]).body == answer.body


def test_the_same_key_and_body_return_the_same_job(mill: Mill) -> None:
    first = mill.post({"n": 1}, key="a-key")
    mill.run()

    again = mill.post({"n": 1}, key="a-key")

    assert (again.status, again.headers["Idempotent-Replayed"]) == (200, "true")
    assert (again.body["id"], again.body["state"]) == (first.body["id"], "succeeded")
    assert mill.stored() == 1


def test_the_same_key_with_another_body_is_refused(mill: Mill) -> None:
    mill.post({"n": 1}, key="a-key")

    _is_problem(mill.post({"n": 2}, key="a-key"), 422, "key-reused")
    assert mill.stored() == 1


@pytest.mark.parametrize("media_type", ["application/json; charset=utf-8", "Application/JSON", " application/json "])
def test_every_spelling_of_the_json_media_type_is_accepted(mill: Mill, media_type: str) -> None:
    assert mill.post_text(BODY, media_type=media_type).status == 202


def test_a_body_in_base64_is_accepted(mill: Mill) -> None:
    body = '{"type":"test.scripted","payload":{"name":"Zoë"}}'

    answer = mill.post_text(base64.b64encode(body.encode()).decode(), base64=True)

    assert answer.body["payload"] == {"name": "Zoë"}


@pytest.mark.parametrize(
    ("body", "encoded"),
    [
        (None, False),
        ("", False),
        ("{", False),
        ("{'type': 1}", False),
        ('{"n":NaN}', False),
        ('{"n":-Infinity}', False),
        ("\ufeff{}", False),
        ("[" * 100_000, False),
        ('{"n":' + "9" * 5000 + "}", False),
        ('"\ud800"', False),
        ("not base64", True),
        (base64.b64encode(b'{"type":"\xff"}').decode(), True),
    ],
    ids=[
        "none",
        "empty",
        "cut",
        "not JSON",
        "NaN",
        "infinity",
        "byte order mark",
        "bottomless",
        "endless number",
        "half a surrogate pair",
        "not base64",
        "not UTF-8",
    ],
)
def test_a_body_that_is_not_json_is_refused(mill: Mill, body: str | None, encoded: bool) -> None:
    _is_problem(mill.post_text(body, base64=encoded), 400, "not-json")
    assert mill.stored() == 0


@pytest.mark.parametrize(
    ("body", "name"),
    [
        ('{"type":"test.scripted","type":"test.scripted"}', '"type"'),
        ('{"type":"test.scripted","payload":{"list":[{"n":1,"n":1}]}}', '"n"'),
        ('{"type":"test.scripted","payload":{"\\u0061":1,"a":2}}', '"a"'),
        ('{"type":"test.scripted","payload":{"%s":1,"%s":2}}' % (("x" * 9000,) * 2), f'"{"x" * 100}"'),
    ],
    ids=["of the body", "deep in the payload", "in two spellings", "with a long name"],
)
def test_a_member_that_occurs_twice_is_refused_by_its_name(mill: Mill, body: str, name: str) -> None:
    answer = mill.post_text(body)

    _is_problem(answer, 400, "duplicate-member")
    assert f"two members {name}." in answer.body["detail"]
    assert mill.stored() == 0


@pytest.mark.parametrize("path", ["{location}\n", "/jobs\n"])
def test_a_path_that_ends_in_a_line_feed_is_not_found(mill: Mill, path: str) -> None:
    location = mill.post_text(BODY).headers["Location"]

    _is_problem(call(query, "GET", path.format(location=location)), 404, "not-found")


@pytest.mark.parametrize("sent", [b"Zo\xeb", b"\xc3", b"\xff\xfe", b"\xf0\x9f"])
def test_a_body_that_is_not_utf_8_is_refused_and_not_stored_with_replacement_characters(
    mill: Mill, sent: bytes
) -> None:
    body = b'{"type":"test.scripted","payload":{"name":"' + sent + b'"}}'

    # API Gateway replaces the invalid bytes.
    answer = mill.post_text(body.decode(errors="replace"), length_bytes=len(body))

    _is_problem(answer, 400, "not-json")
    assert answer.body["detail"] == "The body is not UTF-8. Encode the JSON in UTF-8."
    assert mill.stored() == 0


def test_a_replacement_character_that_was_sent_is_kept(mill: Mill) -> None:
    body = '{"type":"test.scripted","payload":{"name":"Zo\ufffd"}}'

    answer = mill.post_text(body, length_bytes=len(body.encode()))

    assert (answer.status, answer.body["payload"]) == (202, {"name": "Zo\ufffd"})


@pytest.mark.parametrize("media_type", ["", "text/plain", "application/jsonp", "application/x-www-form-urlencoded"])
def test_a_body_of_another_media_type_is_refused(mill: Mill, media_type: str) -> None:
    _is_problem(mill.post_text(BODY, media_type=media_type), 415, "media-type")
    assert mill.stored() == 0


@pytest.mark.parametrize("encoded", [False, True])
def test_a_body_over_the_size_cap_is_refused(mill: Mill, encoded: bool) -> None:
    def sized(size_bytes: int) -> str:
        body = '{"type":"test.scripted","payload":{}}'.ljust(size_bytes)
        return base64.b64encode(body.encode()).decode() if encoded else body

    _is_problem(mill.post_text(sized(LARGEST_BODY_BYTES + 1), base64=encoded), 413, "too-large")
    assert mill.stored() == 0
    assert mill.post_text(sized(LARGEST_BODY_BYTES), base64=encoded).status == 202


def test_a_payload_that_grows_over_the_cap_when_it_is_written_is_refused(mill: Mill) -> None:
    name = "ë" * (LARGEST_BODY_BYTES // 4)

    _is_problem(
        mill.post_text(json.dumps({"type": "test.scripted", "payload": {"x": name}}, ensure_ascii=False)),
        413,
        "too-large",
    )


@pytest.mark.parametrize(
    ("body", "pointers"),
    [
        ([], ["#"]),
        ({}, ["#/type"]),
        ({"type": 1, "payload": []}, ["#/type", "#/payload"]),
        ({"type": ""}, ["#/type"]),
        ({"type": "x" * 101}, ["#/type"]),
        ({"type": "\ud800"}, ["#/type"]),
        ({"type": "test.scripted", "\ud800": 1}, ["#"]),
        ({"type": "test.scripted", "\ud800": 1, "lane": "x", "delay_seconds": -1}, ["#", "#/lane", "#/delay_seconds"]),
        ({"type": "test.scripted", "\ud800": 1, "group": ""}, ["#", "#/group"]),
        ({"type": "test.scripted", "unique": {"period_seconds": 60, "\ud800": 1}}, ["#/unique"]),
        ({"type": "test.scripted", "payload": None}, ["#/payload"]),
        ({"type": "test.scripted", "tenant": "another", "a/b~c ü": 1}, ["#/tenant", "#/a~1b~0c%20%C3%BC"]),
        ({"type": "test.scripted", "payload": {"n": "many"}}, ["#/payload/n"]),
        (
            {"type": "test.scripted", "lane": "x", "group": "", "later": 1, "payload": {"n": "many"}},
            ["#/lane", "#/later", "#/group", "#/payload/n"],
        ),
        ({"type": "none", "lane": "x"}, ["#/lane", "#/type"]),
        ({"type": "test.scripted", "run_at": "soon", "payload": {"n": "many"}}, ["#/run_at", "#/payload/n"]),
        ({"type": "test.scripted", "payload": "x" * 9, "delay_seconds": -1}, ["#/payload", "#/delay_seconds"]),
    ],
    ids=str,
)
def test_an_invalid_body_is_refused_with_the_path_of_each_fault(mill: Mill, body: Any, pointers: list[str]) -> None:
    answer = mill.post_text(json.dumps(body))

    _is_problem(answer, 422, "invalid-body")
    assert _pointers(answer) == pointers
    assert mill.stored() == 0


def test_the_detail_lists_the_path_and_the_message_of_each_fault(mill: Mill) -> None:
    answer = mill.post_text('{"type":"test.scripted","run_at":"soon"}')

    (fault,) = answer.body["errors"]
    assert fault["detail"].startswith("invalid time; use RFC 3339")
    assert answer.body["detail"] == f"/run_at: {fault['detail']}"
    assert mill.post_text("[]").body["detail"] == "the body must be a JSON object"


def test_a_payload_other_than_an_object_is_refused_in_the_words_of_json(mill: Mill) -> None:
    answer = mill.post_text('{"type": "test.scripted", "payload": [1]}')

    assert (answer.status, answer.body["errors"]) == (
        422,
        [{"pointer": "#/payload", "detail": "Input should be a JSON object"}],
    )


def test_a_number_that_json_cannot_hold_is_refused(mill: Mill) -> None:
    answer = mill.post_text('{"type":"test.scripted","payload":{"x":1e999}}')

    _is_problem(answer, 422, "invalid-body")
    assert mill.stored() == 0


@pytest.mark.parametrize("levels", [DEEPEST_NESTING + 1, 700, 900, 940])
def test_a_payload_that_is_nested_too_deeply_is_refused(mill: Mill, levels: int) -> None:
    nested = '{"a":' * levels + "1" + "}" * levels

    answer = mill.post_text(f'{{"type":"test.scripted","payload":{nested}}}')

    assert answer.status in {400, 422}
    assert mill.stored() == 0


def test_half_a_surrogate_pair_in_a_payload_goes_through_unchanged(mill: Mill) -> None:
    mill.script.handler = lambda payload, _run: payload.model_dump()
    job_id = mill.post_text('{"type":"test.scripted","payload":{"x":"\\ud800"}}').body["id"]

    mill.run()

    assert mill.get(job_id).body["result"] == {"n": 0, "x": "\ud800"}


def test_an_unknown_type_is_refused_with_the_known_types(mill: Mill) -> None:
    answer = mill.post(job_type="test.other")

    _is_problem(answer, 422, "unknown-job-type")
    assert answer.body["detail"] == "unknown job type 'test.other'"
    known = ", ".join(composition.known_job_types().names())
    assert answer.body["errors"] == [{"pointer": "#/type", "detail": f"known types: {known}"}]
    assert "test.noop, " in known
    assert mill.stored() == 0


def test_a_misspelt_type_is_refused_with_the_most_similar_one(mill: Mill) -> None:
    assert mill.post(job_type="test.nop").body["detail"] == "unknown job type 'test.nop'; did you mean 'test.noop'?"


@pytest.mark.parametrize("key", ["", "x" * 256, "with space", "tab\t", "ünicode", "\x7f"])
def test_a_key_outside_visible_ascii_is_refused(mill: Mill, key: str) -> None:
    _is_problem(mill.post(key=key), 400, "invalid-key")
    assert mill.stored() == 0


@pytest.mark.parametrize(
    "iam",
    [
        None,
        {},
        {"accountId": "111122223333"},
        {"userId": "AROA:x"},
        {"accountId": "", "userId": "AROA"},
        {"userId": None},
        {"accountId": "111122223333", "userId": "111122223333"},
        {"accountId": "111122223333", "userId": "111122223333:a-name-of-the-callers-choice"},
    ],
    ids=str,
)
def test_a_request_without_an_identity_is_refused(mill: Mill, iam: Any) -> None:
    _is_problem(mill.post_text(BODY, iam=iam), 403, "no-identity")
    _is_problem(mill.get("any", iam=iam), 403, "no-identity")
    assert mill.stored() == 0


def test_sessions_of_one_role_are_one_tenant_and_another_role_is_another(mill: Mill) -> None:
    job_id = mill.accepted()

    same = {"accountId": "111122223333", "userId": None, "callerId": "AROAEXAMPLE:another-session"}
    other = {"accountId": "111122223333", "userId": "AROAOTHER:a-session"}
    assert mill.get(job_id, iam=same).status == 200
    _is_problem(mill.get(job_id, iam=other), 404, "no-such-job")


@pytest.mark.parametrize("job_id", ["none", "x" * 3000, "a#b", "..", "%2e%2e", "💥"])
def test_an_unknown_id_is_not_found(mill: Mill, job_id: str) -> None:
    answer = mill.get(job_id)

    assert answer.status == 404
    assert answer.headers["Content-Type"] == "application/problem+json"


def test_an_expired_job_is_not_found(mill: Mill) -> None:
    job_id = mill.accepted()
    mill.run()
    assert mill.job(job_id).state is State.SUCCEEDED

    mill.late = RETENTION + SECOND

    _is_problem(mill.get(job_id), 404, "no-such-job")


@pytest.mark.parametrize(("method", "path"), [("GET", "/job"), ("POST", "/job"), ("DELETE", "/jobs/x"), ("GET", "/")])
def test_an_unknown_route_is_not_found(mill: Mill, method: str, path: str) -> None:
    _is_problem(call(submit, method, path), 404, "not-found")
    if path != "/jobs/x":
        _is_problem(call(query, method, path), 404, "not-found")


@pytest.mark.parametrize("fault", [Fault.NOT_SENT, Fault.ANSWER_LOST])
def test_an_unavailable_store_is_a_503_that_does_not_name_the_store(mill: Mill, fault: Fault) -> None:
    mill.client.faults = [fault]

    answer = mill.post({"n": 1}, key="a-key")

    _is_problem(answer, 503, "unavailable")
    assert answer.headers["Retry-After"] == "1"
    assert "dynamodb" not in answer.body["detail"]
    assert mill.post({"n": 1}, key="a-key").status == (200 if fault is Fault.ANSWER_LOST else 202)
    assert mill.stored() == 1


def test_a_document_of_a_newer_version_is_a_503(mill: Mill) -> None:
    job = mill.job(mill.accepted())
    mill.table.put(job, schema={"N": str(SCHEMA_VERSION + 1)})

    _is_problem(mill.get(job.id), 503, "unavailable")


def test_an_unexpected_error_is_a_500_without_its_text(mill: Mill, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: object) -> Any:
        raise RuntimeError("a secret")

    monkeypatch.setattr(composition.FunctionParts, "api_submit", property(broken))

    answer = mill.post()

    _is_problem(answer, 500, "internal")
    assert "secret" not in json.dumps(answer.body)


def test_a_500_names_the_request_under_which_the_log_has_its_cause(
    mill: Mill, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delattr(composition.FunctionParts, "api_submit")

    answer = mill.post()

    request = answer.body["instance"].removeprefix("urn:tidemill:request:")
    assert [vars(line)["request"] for line in caplog.records if line.exc_info] == [request]


def test_a_document_with_an_unreadable_field_is_shown_as_such(mill: Mill) -> None:
    job = mill.job(mill.accepted())
    mill.table.put(job, lane={"S": "urgent"})

    for answer in (mill.get(job.id), call(control, "POST", f"/jobs/{job.id}/cancel")):
        _is_problem(answer, 500, "unreadable-job")
        assert (
            "the field 'lane' of the job document cannot be read: 'urgent' is not a valid Lane" in answer.body["detail"]
        )
