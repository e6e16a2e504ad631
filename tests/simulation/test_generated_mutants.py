"""The generator of mutants, its sample, its bounds, and one mutant from the change of a text to the violated check."""

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.simulation.mutants.generated.blocks import Block
from tests.simulation.mutants.generated.equivalent_mutants import equivalents
from tests.simulation.mutants.generated.forks import End, ForkError, in_forks
from tests.simulation.mutants.generated.generate import GeneratedMutant, all_mutants
from tests.simulation.mutants.generated.mutation_sites import Sites
from tests.simulation.mutants.generated.plays import Play
from tests.simulation.mutants.generated.reached_plays import ReachedPlays
from tests.simulation.mutants.generated.reached_tests import ReachedTests
from tests.simulation.mutants.generated.results import Result, Results
from tests.simulation.mutants.generated.run_sample import chosen_mutants
from tests.simulation.mutants.generated.sample import sample
from tests.simulation.mutants.generated.summary import Summary
from tests.simulation.stories import recorded

ENUMS: Final = {"State": ("QUEUED", "RUNNING", "DEAD"), "Write": ("CLAIM", "SETTLE")}


@pytest.fixture(scope="module")
def mutants() -> dict[str, GeneratedMutant]:
    return all_mutants()


def _changed(body: str) -> set[str]:
    """Every mutant of a function with this body, as the text of its body."""
    head = "def f(job, now) -> bool:\n    "
    sites = Sites(head + body, ENUMS)
    return {sites.source.replaced(change).removeprefix(head) for _, change in sites.found}


@pytest.mark.parametrize(
    ("body", "mutated"),
    [
        ("job.close()\n    return now", "pass\n    return now"),
        ("job.close()\n    return now", "return True\n    job.close()\n    return now"),
        ("job.due += now\n    return now", "pass\n    return now"),
        ("if job:\n        raise ValueError('no')\n    return now", "if job:\n        pass\n    return now"),
        ("if job:\n        return now\n    return job", "if not (job):\n        return now\n    return job"),
        ("if job:\n        return now\n    return job", "if True:\n        return now\n    return job"),
        ("if job:\n        return now\n    return job", "if job:\n        pass\n    return job"),
        ("return job and now", "return ((now))"),
        ("return job.due <= now", "return job.due < now"),
        ("return job is not None", "return job is None"),
        ("return job - now", "return job + now"),
        ("return max(job, now)", "return min(job, now)"),
        ("return job.attempt + 4", "return job.attempt + 8"),
        ("return job.size < 4096", "return job.size < 8192"),
        ("return sorted(job, reverse=True)", "return sorted(job, reverse=False)"),
        ("return job.state is State.RUNNING", "return job.state is State.DEAD"),
        ('return {"state": job, "due": now}', 'return {"state": job}'),
        ("return [job, now]", "return [now]"),
        ("return job in (now, 1)", "return job in (now,)"),
        ('return "#due <= :now"', 'return "#due < :now"'),
        (
            'return f"#{DUE} <= :now"',
            'return f"(#{DUE} <= :now OR attribute_exists(#{DUE}) OR attribute_not_exists(#{DUE}))"',
        ),
        ('return "#attempt = #attempt + :one"', 'return "#attempt = #attempt - :one"'),
        (
            "try:\n        return now\n    except ValueError:\n        return job",
            "try:\n        return now\n    except ():\n        return job",
        ),
        ("with job.lock:\n        return now", "if True:\n        return now"),
    ],
)
def test_each_operator_makes_its_change(body: str, mutated: str) -> None:
    assert mutated in _changed(body)


@pytest.mark.parametrize(
    "body",
    [
        '"""Docstring."""\n    return now',
        "raise AssertionError(f'{job} has 3 attempts')",
        "return logger().warning('not sent', extra={'error': 1})",
        "due: Annotated[int, 3]\n    return now",
        "return zip(job, now, strict=True)",
        "return self.update(Write.CLAIM)",
    ],
)
def test_text_that_changes_no_behaviour_stays(body: str) -> None:
    assert not _changed(body) - {"pass", f"return True\n    {body}", f"return False\n    {body}"}


@pytest.mark.parametrize("alias", ["Moved = Callable[[Job, Job], None]", "Found = list[Job] | None"])
def test_a_type_alias_stays(alias: str) -> None:
    assert not Sites(alias, ENUMS).found


def test_one_more_of_a_time_or_a_size_is_left_out() -> None:
    assert "return timedelta(minutes=6)" not in _changed("return timedelta(minutes=5)")
    assert "return timedelta(minutes=10)" in _changed("return timedelta(minutes=5)")
    texts = ("SIZE = 8 * 1024", "COUNT = 8")
    sites = [Sites(text, ENUMS) for text in texts]
    size, count = ({one.source.replaced(change) for _, change in one.found} for one in sites)
    assert "SIZE = 9 * 1024" not in size
    assert "SIZE = 16 * 1024" in size
    assert "COUNT = 9" in count


def test_ids_name_module_function_operator_and_occurrence(mutants: dict[str, GeneratedMutant]) -> None:
    mutant = mutants["dynamodb.job_writes:claim:drop-clause:0"]
    assert mutant.module == "tidemill.dynamodb.job_writes"
    assert '+            "(#generation = :generation OR' in mutant.diff()


def test_a_sample_depends_on_its_seed_alone(mutants: dict[str, GeneratedMutant]) -> None:
    chosen = sample(mutants.values(), count=50, seed="1")
    assert chosen == sample(reversed(mutants.values()), count=50, seed="1")
    assert chosen != sample(mutants.values(), count=50, seed="2")
    assert len({(mutant.module, mutant.line) for mutant in chosen}) == 50


def test_a_sample_may_be_limited_to_some_ids() -> None:
    all_of_one = {mutant.id for mutant in chosen_mutants(None, "1", only="domain.attempt.retry:*")}
    assert all_of_one
    assert all(name.startswith("domain.attempt.retry:") for name in all_of_one)
    assert {mutant.id for mutant in chosen_mutants(3, "1", only="domain.attempt.retry:*")} < all_of_one


def test_a_sample_changes_little_with_the_code(mutants: dict[str, GeneratedMutant]) -> None:
    chosen = sample(mutants.values(), count=50, seed="1")
    others = [mutant for mutant in mutants.values() if mutant is not chosen[0]]
    assert len({*chosen} & {*sample(others, count=50, seed="1")}) == 49


def test_each_reason_for_an_equivalent_mutant_still_fits(mutants: dict[str, GeneratedMutant]) -> None:
    lapsed = [name for name, equivalent in equivalents().items() if not equivalent.fits(mutants.get(name))]
    assert lapsed == []


def _results(*, simulator: int, tests: int, survived: int) -> list[Result]:
    caught = [Result(f"a:{number}", ("seed 0: a check", "story a: -1 +2")[number % 2]) for number in range(simulator)]
    caught += [Result(f"b:{number}", None, "test_x") for number in range(tests)]
    return caught + [Result(f"c:{number}", None) for number in range(survived)]


@pytest.mark.parametrize(
    ("simulator", "tests", "survived", "equivalent", "within"),
    [
        (75, 23, 2, 11, True),
        (75, 22, 3, 0, False),
        (74, 26, 0, 0, False),
        (100, 0, 0, 12, False),
    ],
)
def test_a_sample_keeps_its_bounds(simulator: int, tests: int, survived: int, equivalent: int, within: bool) -> None:
    summary = Summary(_results(simulator=simulator, tests=tests, survived=survived), equivalent=equivalent)
    assert summary.within_bounds is within


def test_a_sample_tells_stories_from_seeds() -> None:
    assert "| all | 10 | 3 | 4 | 2 | 1 |" in Summary(_results(simulator=7, tests=2, survived=1), equivalent=0).text()


def test_results_are_kept_for_the_same_tree_and_seeds(tmp_path: Path) -> None:
    result = Result("a:0", None, "test_x")
    Results(tmp_path, "1", seeds=500).add(result)
    assert Results(tmp_path, "1", seeds=500).get("a:0") == result
    assert Results(tmp_path, "1", seeds=5).get("a:0") is None


@pytest.mark.parametrize(("line", "plays"), [(5, ["a", 2]), (9, ["a", 0]), (12, []), (30, ["a", "b", 0])])
def test_only_what_reaches_the_block_of_a_mutant_is_played(line: int, plays: list[Play]) -> None:
    """Every story, and as many seeds as asked for."""
    blocks: dict[Block, list[Play]] = {
        ("tidemill.a", 1, 10): ["a", 0, 2],
        ("tidemill.a", 4, 6): ["a", 2],
        ("tidemill.a", 11, 14): [],
    }
    mutant = GeneratedMutant(id="a:f:drop:0", module="tidemill.a", line=line, description="", mutated="")
    assert ReachedPlays(blocks, every=["a", "b", 0, 1, 2]).of(mutant, most_seeds=1) == plays


@pytest.mark.mutant
def test_a_run_of_the_unbroken_engine_notes_which_plays_reach_what(tmp_path: Path) -> None:
    script = (
        "import sys\n"
        "from pathlib import Path\n"
        "from tests.simulation.mutants.generated.generate import mutant_named\n"
        "from tests.simulation.mutants.generated.reached_plays import reached_plays\n"
        "reached = reached_plays(Path(sys.argv[1]), seeds=2, processes=2)\n"
        "for name in sys.argv[2:]:\n"
        "    print(*reached.of(mutant_named(name)))\n"
    )
    names = (
        "dynamodb.job_writes:_end_run:drop-clause:0",
        "domain.attempt.retry:RetryPolicy.__post_init__:fix-condition:0",
    )
    command = [sys.executable, "-c", script, str(tmp_path / "reached.json"), *names]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    # Every seed ends a run, as some stories do, and job types are declared while modules are imported.
    ends_runs, declared = (line.split() for line in run.stdout.splitlines())
    assert declared == [*recorded(), *"01"]
    assert ends_runs[-2:] == [*"01"]
    assert "a-job-that-succeeds" in ends_runs


@pytest.mark.mutant
def test_a_mutant_is_simulated_until_a_check_or_a_story_fails() -> None:
    script = (
        "from tests.simulation.mutants.generated.generate import mutant_named\n"
        "from tests.simulation.mutants.generated.simulate_mutants import caught_by\n"
        "broken = mutant_named('dynamodb.job_writes:_end_run:drop-clause:0')\n"
        "print(caught_by(broken, range(40)))\n"
        "print(caught_by(broken, ['a-job-that-succeeds']))\n"
        "print(caught_by(mutant_named('domain.attempt.retry:(module):swap-number:0'), range(2)))\n"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    by_seed, by_story, passed = run.stdout.splitlines()
    assert by_seed.startswith("seed ")
    assert by_story.startswith("story a-job-that-succeeds: ")
    # No job of the simulator may wait for a day.
    assert passed == "None"


@pytest.mark.mutant
def test_a_mutant_meets_the_tests_that_reach_it(tmp_path: Path) -> None:
    script = (
        "import sys\n"
        "from pathlib import Path\n"
        "from tests.simulation.mutants.generated import reached_tests\n"
        "from tests.simulation.mutants.generated.generate import mutant_named\n"
        "from tests.simulation.mutants.generated.targeted_tests import failing_test\n"
        "files = ['tests/unit/domain/dispatch/test_claim_verdict.py', 'tests/unit/domain/attempt/test_retry.py']\n"
        "reached = reached_tests.reached_tests(Path(sys.argv[1]), files=files, processes=2)\n"
        "for name in sys.argv[2:]:\n"
        "    mutant = mutant_named(name)\n"
        "    names = reached.of(mutant)\n"
        "    print({name.partition('::')[0] for name in names}, failing_test(mutant, names))\n"
    )
    names = ("domain.dispatch.claim_verdict:judge:swap-member:0", "domain.attempt.retry:(module):swap-number:0")
    command = [sys.executable, "-c", script, str(tmp_path / "reached.json"), *names]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    caught, passed = run.stdout.splitlines()
    assert caught.startswith(
        "{'tests/unit/domain/dispatch/test_claim_verdict.py'} tests/unit/domain/dispatch/test_claim_verdict.py::"
    )
    assert passed.endswith("test_retry.py'} None")


def test_the_tests_of_a_mutant_are_in_order() -> None:
    block = ("tidemill.domain.attempt.retry", 1, 10)
    near, fast, slow, failing = "unit/test_retry.py::a", "unit/test_b.py::b", "unit/test_b.py::c", "unit/test_b.py::d"
    number = "tests/unit/docs/test_constants_page.py::e"
    reached = ReachedTests({near: 3.0, slow: 2.0, fast: 1.0, number: 4.0}, {block: [slow, failing, near, fast]})
    mutant = GeneratedMutant(id="", module=block[0], line=5, description="", mutated="")
    assert reached.of(mutant) == [near, fast, slow]
    # Outside functions: all that reach another block of the module, and those that read all constants.
    outside = GeneratedMutant(id="", module=block[0], line=20, description="", mutated="")
    assert reached.of(outside) == [number, near, fast, slow]
    elsewhere = GeneratedMutant(id="", module="tidemill.domain.c", line=20, description="", mutated="")
    assert reached.of(elsewhere) == [number]
    # One that reads a table of the module reaches no function of it.
    reading = GeneratedMutant(id="", module="tidemill.domain.bs", line=20, description="", mutated="")
    assert reached.of(reading) == [number, fast, slow]


def test_a_fork_gives_its_result_or_its_failure() -> None:
    def work(number: int, end: End) -> str:
        if number == 1:
            end("ended")
        return str(6 // number)

    ended = {one.item: one for one in in_forks([0, 1, 2], work, processes=2)}
    assert (ended[1].result(), ended[2].result()) == ("ended", "3")
    with pytest.raises(ForkError, match="ZeroDivisionError"):
        ended[0].result()
