"""What handlers log and print carries the fields of their jobs, and nothing else changes."""

# ruff: noqa: T201 - handlers print
import contextvars
import io
import json
import logging
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import Any, NoReturn

import pytest
from aws_lambda_powertools import Logger

from tests.support.builders import a_job, fresh_token
from tidemill.application.attempt.run_log import RUN_LOGGER, RunLog
from tidemill.domain.records import replace
from tidemill.telemetry import handler_output
from tidemill.telemetry.handler_output import handler_scope
from tidemill.telemetry.handler_stream import LONGEST_BEGUN_LINE, HandlerStream
from tidemill.telemetry.line_output import LineOutput

JOB = a_job(id="j-1", attempt=2)
FIELDS = {
    "tenant": JOB.tenant,
    "job_id": "j-1",
    "job_type": JOB.type,
    "lane": "default",
    "generation": JOB.generation,
    "attempt": 2,
    "trace": JOB.trace,
    "request_id": "r-1",
}


class Output:
    """Standard output and error of a worker."""

    def __init__(self) -> None:
        self.out = io.StringIO()
        self.err = io.StringIO()

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.getvalue().splitlines()]

    def line(self) -> dict[str, Any]:
        (line,) = self.lines()
        return line


@contextmanager
def worker() -> Iterator[Output]:
    """Inside, standard output and error are those of a worker. No fixture: pytest replaces them after it."""
    output = Output()
    with redirect_stdout(output.out), redirect_stderr(output.err):
        handler_output.install()
        try:
            yield output
        finally:
            handler_output.remove()


@contextmanager
def handler() -> Iterator[Output]:
    """Inside runs the handler of `JOB`."""
    with worker() as output, handler_scope(JOB, request_id="r-1"):
        yield output


def fields(line: dict[str, Any]) -> dict[str, Any]:
    return {name: line.get(name) for name in FIELDS}


def test_a_printed_line_is_a_json_line_with_the_fields() -> None:
    with handler() as output:
        print("sent", 3, "mails")

    line = output.line()
    assert (line["message"], line["level"], fields(line)) == ("sent 3 mails", "INFO", FIELDS)


def test_a_number_is_printed_as_text() -> None:
    with handler() as output:
        print(5)

    assert output.line()["message"] == "5"


def test_each_line_of_a_text_is_a_line() -> None:
    with handler() as output:
        sys.stdout.writelines(["a\nb", "c\n", "\n"])

    assert [line["message"] for line in output.lines()] == ["a", "bc"]


def test_a_line_that_the_handler_has_not_ended_is_written_when_the_handler_ends() -> None:
    with worker() as output, handler_scope(JOB, request_id="r-1"):
        print("half", end="")
        assert output.out.getvalue() == ""

    line = output.line()
    assert (line["message"], fields(line)) == ("half", FIELDS)


def test_a_handler_that_ends_no_line_does_not_fill_the_memory() -> None:
    with handler() as output:
        for _ in range(3):
            print("x" * LONGEST_BEGUN_LINE, end="")

    assert len(output.lines()) >= 2


def test_outside_of_handlers_nothing_changes() -> None:
    with worker() as output:
        print("a\n\nb", end="")
        sys.stdout.write('{"a":1}')
        logging.getLogger("library").error("said")

    assert output.out.getvalue() == 'a\n\nb{"a":1}'


def test_a_json_line_keeps_its_text_and_gets_the_fields_it_lacks() -> None:
    with handler() as output:
        print('{"n":1.50,"lane":"mine"}')
        print("{}")

    first, second = output.out.getvalue().splitlines()
    assert first.startswith('{"n":1.50,"lane":"mine",')
    assert fields(json.loads(first)) == FIELDS | {"lane": "mine"}
    assert json.loads(second) == FIELDS


def test_a_line_about_another_job_stays_as_it_is() -> None:
    with handler() as output:
        print('{"job_id":"other"}')

    assert output.line() == {"job_id": "other"}


@pytest.mark.parametrize("text", ['{"a":', "{'a': 1}", "{" * 5_000, "[1]"])
def test_text_that_only_looks_like_json_is_text(text: str) -> None:
    with handler() as output:
        print(text)

    assert output.line()["message"] == text


def test_a_record_of_any_logger_carries_the_fields_and_those_of_its_author() -> None:
    with handler() as output:
        logging.getLogger("library.part").warning("sent %d", 3, extra={"mails": 3, "attempt": 7})

    line = output.line()
    assert (line["message"], line["level"], line["mails"]) == ("sent 3", "WARNING", 3)
    assert fields(line) == FIELDS | {"attempt": 7}


def test_the_root_handler_of_lambda_does_not_repeat_the_record(monkeypatch: pytest.MonkeyPatch) -> None:
    lambdas = io.StringIO()
    lambda_handler = logging.StreamHandler(lambdas)
    logging.getLogger().addHandler(lambda_handler)
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    handler_output.install()
    try:
        logging.getLogger("library").warning("before")
        with handler_scope(JOB, request_id="r-1"):
            logging.getLogger("library").warning("during")
    finally:
        handler_output.remove()
        logging.getLogger().removeHandler(lambda_handler)

    assert lambdas.getvalue() == "before\n"


def test_a_logger_that_writes_to_the_output_itself_is_written_once() -> None:
    with handler() as output:
        logger = Logger(service=fresh_token(), stream=sys.stdout)
        logger.info("sent", extra={"mails": 3})

    line = output.line()
    assert (line["message"], line["mails"], fields(line)) == ("sent", 3, FIELDS)


def test_run_log_carries_the_fields_in_any_thread() -> None:
    with worker() as output, handler_scope(JOB, request_id="r-1") as given:
        log = RunLog(given.fields)
        threads = [
            threading.Thread(target=log.info, args=("sent %d", 3)),
            threading.Thread(target=print, args=("x",)),
        ]
        for thread in threads:
            thread.start()
            thread.join()

    sent, _, bare = output.out.getvalue().partition("\n")
    assert (json.loads(sent)["message"], fields(json.loads(sent))) == ("sent 3", FIELDS)
    assert bare == "x\n" or sys.flags.thread_inherit_context  # type: ignore[attr-defined,unused-ignore]  # 3.14


def test_a_thread_with_a_copy_of_the_context_prints_with_the_fields() -> None:
    with handler() as output:
        thread = threading.Thread(target=contextvars.copy_context().run, args=(print, "x"))
        thread.start()
        thread.join()

    assert fields(output.line()) == FIELDS


def test_a_line_that_a_late_thread_has_begun_begins_no_line_of_another_job() -> None:
    with worker() as output:
        with handler_scope(JOB, request_id="r-1"):
            late = contextvars.copy_context()
        # Like a thread that has outlived its handler, and ends without the end of its line.
        late.run(print, "half of j-1", end="")
        del late
        for number in range(100):
            # One of these gets the place in memory that the fields of the first one had.
            with handler_scope(replace(JOB, id=f"j-{number + 2}"), request_id="r-2"):
                print("whole")

    assert {line["message"] for line in output.lines()} == {"whole"}


def test_a_field_that_logging_uses_itself_does_not_fail_the_job() -> None:
    with handler() as output:
        RunLog(FIELDS).info("sent", extra={"name": "ada", "message": "hi"})

    line = output.line()
    assert (line["name_"], line["message_"], line["message"]) == ("ada", "hi", "sent")


def test_an_error_while_a_line_is_written_does_not_reach_the_handler() -> None:
    class Unprintable:
        def __str__(self) -> NoReturn:
            raise RuntimeError("no text")

    loop: list[Any] = []
    loop.append(loop)
    with handler() as output:
        logging.getLogger("library").warning("%s", Unprintable())
        logging.getLogger("library").warning("%d", "not a number")
        logging.getLogger("library").warning("loop", extra={"loop": loop})

    assert output.out.getvalue() == ""
    assert output.err.getvalue().count('"--- Logging error ---"') == 3


def test_a_formatter_that_fails_leaves_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(logging.Formatter):
        def format(self, record: logging.LogRecord) -> NoReturn:
            raise RuntimeError

    stream = io.StringIO()
    with handler_scope(JOB, request_id="r-1"):
        HandlerStream(stream, LineOutput(stream), level=logging.INFO, formatter=Broken()).write("text\n")

    assert stream.getvalue() == "text\n"


def test_standard_error_is_written_as_a_warning() -> None:
    with handler() as output:
        try:
            int("one")
        except ValueError:
            traceback.print_exc()

    lines = [json.loads(line) for line in output.err.getvalue().splitlines()]
    assert lines[-1]["message"].startswith("ValueError: ")
    assert all(line["level"] == "WARNING" and fields(line) == FIELDS for line in lines)


def test_the_stream_has_the_attributes_of_the_stream_it_stands_for(monkeypatch: pytest.MonkeyPatch) -> None:
    binary = io.BytesIO()
    text = io.TextIOWrapper(binary, "utf-8")
    stream = HandlerStream(text, LineOutput(text), level=logging.INFO, formatter=logging.Formatter())
    with handler_scope(JOB, request_id="r-1"):
        stream.buffer.write(b"\xff\n")
        stream.flush()

    assert binary.getvalue() == b"\xff\n"
    assert (stream.encoding, stream.isatty()) == ("utf-8", False)


@pytest.mark.parametrize("name", ["stdout", "stderr"])
def test_a_handler_cannot_close_the_stream_of_its_successors(name: str) -> None:
    with handler():
        getattr(sys, name).close()
    with handler() as output:
        print("printed")
        logging.getLogger("library").warning("logged")
    assert [line["message"] for line in output.lines()] == ["printed", "logged"]


def test_a_second_installation_changes_nothing() -> None:
    with handler() as output:
        handler_output.install()
        print("once")
        logging.getLogger("library").warning("once")

    assert len(output.lines()) == 2


def test_the_level_of_run_log_is_that_of_tidemills_lines() -> None:
    with handler() as output:
        RunLog(FIELDS).debug("detail")
        RunLog(FIELDS).info("sent")

    assert output.line()["message"] == "sent"
    assert logging.getLogger(RUN_LOGGER).level == logging.INFO


@pytest.mark.parametrize(
    ("variable", "level"), [("debug", logging.DEBUG), ("", logging.INFO), ("loud", logging.INFO), ("10", logging.INFO)]
)
def test_no_text_in_the_variable_of_the_level_stops_a_worker(
    monkeypatch: pytest.MonkeyPatch, variable: str, level: int
) -> None:
    monkeypatch.setenv("POWERTOOLS_LOG_LEVEL", variable)

    with worker():
        assert logging.getLogger(RUN_LOGGER).level == level
