"""`make test` uses every core for all tests, and one process for a few of them."""

import signal

import pytest

from tools import run_tests

SLOWEST = ["--durations", "20", "--durations-min", "1"]
ON_EACH_CORE = ["--numprocesses", "2", *SLOWEST]
AND_ONE_THAT_WAITS = ["--numprocesses", "3", *SLOWEST]


@pytest.fixture(autouse=True)
def cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 2)


@pytest.mark.parametrize("arguments", [[], ["-q"], ["--cov", "--cov-fail-under=95"], ["--durations=20"]], ids=str)
def test_all_tests_run_on_every_core(arguments: list[str]) -> None:
    assert run_tests.pytest_arguments(arguments) == AND_ONE_THAT_WAITS + arguments


@pytest.mark.parametrize(("cores", "processes"), [(None, 2), (1, 2), (3, 4), (64, 5)])
def test_the_end_to_end_tests_have_a_process_beside_those_of_the_cores(
    monkeypatch: pytest.MonkeyPatch, cores: int | None, processes: int
) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: cores)
    assert run_tests.pytest_arguments([])[:2] == ["--numprocesses", str(processes)]


@pytest.mark.parametrize(
    "arguments",
    [
        ["-k", "fence"],
        ["-mslow"],
        ["--lf"],
        ["--pdb"],
        ["tests/tools"],
        ["tests/tools/test_run_tests.py::test_chosen_tests_run_in_one_process"],
    ],
    ids=str,
)
def test_chosen_tests_run_in_one_process(arguments: list[str]) -> None:
    assert run_tests.pytest_arguments(arguments) == arguments


@pytest.mark.parametrize("arguments", [["-n", "3"], ["-n3", "-k", "fence"], ["--numprocesses=3"]], ids=str)
def test_a_number_of_processes_on_the_command_line_is_kept(arguments: list[str]) -> None:
    assert run_tests.pytest_arguments(arguments) == arguments


def test_the_fast_run_leaves_out_slow_tests_and_those_that_need_the_embedded_aws() -> None:
    fast = ["-m", "not e2e and not emulator and not slow"]
    assert run_tests.pytest_arguments(["--fast"]) == [*ON_EACH_CORE, *fast]
    assert run_tests.pytest_arguments(["--fast", "-k", "fence"]) == [*fast, "-k", "fence"]


def test_tests_can_interrupt_what_they_start_although_the_run_is_in_the_background(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    handlers: list[object] = []
    monkeypatch.setattr("subprocess.call", lambda *_, **__: handlers.append(signal.getsignal(signal.SIGINT)))
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        run_tests.main()
    finally:
        signal.signal(signal.SIGINT, before)
    assert handlers == [signal.default_int_handler]
