"""Each case runs on the simulated AWS, and on moto unless it is about what moto does not have."""

from collections.abc import Iterator

import pytest
from moto import mock_aws

from tests.simulation.conformance.bench import Aws, Moto, Simulated
from tests.simulation.conformance.cited import MOTO_DIFFERS, SIMULATED_ONLY
from tests.simulation.world.installed import enter, leave


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "aws" in metafunc.fixturenames:
        name = metafunc.function.__name__
        worlds = [pytest.param("simulated")]
        if name not in SIMULATED_ONLY:
            differs = MOTO_DIFFERS.get(name)
            marks = [pytest.mark.xfail(reason=differs, strict=True)] if differs else []
            worlds.append(pytest.param("moto", marks=marks))
        metafunc.parametrize("aws", worlds, indirect=True)


@pytest.fixture
def aws(request: pytest.FixtureRequest) -> Iterator[Aws]:
    if request.param == "moto":
        with mock_aws():
            yield Moto()
        return
    simulated = Simulated()
    enter(simulated.world)
    try:
        yield simulated
    finally:
        leave()


@pytest.fixture
def simulated(aws: Aws) -> Simulated:
    assert isinstance(aws, Simulated)
    return aws
