"""Each case runs on the simulated AWS, and on moto and the emulator where they have the feature."""

from collections.abc import Iterator

import pytest
from moto import mock_aws

from tests.simulation.conformance.case import Aws
from tests.simulation.conformance.citations import BOTOCORE, CASES, EMULATOR, MOTO
from tests.simulation.conformance.differences import DIFFERENCES
from tests.simulation.conformance.moto_and_emulator import Served
from tests.simulation.conformance.sdk_retries import Botocore, Retrying, SimulatedSdk
from tests.simulation.conformance.simulated_aws import Simulated


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    name = metafunc.function.__name__
    for fixture in ("aws", "sdk"):
        if fixture in metafunc.fixturenames:
            metafunc.parametrize(fixture, [_backend(each, name) for each in CASES[name].backends], indirect=True)


def _backend(backend: str, case: str) -> object:
    marks = [pytest.mark.emulator] if backend == EMULATOR else []
    if how := DIFFERENCES.get(backend, {}).get(case):
        marks.append(pytest.mark.xfail(reason=how, strict=True))
    return pytest.param(backend, marks=marks)


@pytest.fixture
def aws(request: pytest.FixtureRequest) -> Iterator[Aws]:
    if request.param == EMULATOR:
        with Served.at(request.getfixturevalue("emulated")) as served:
            yield served
    elif request.param == MOTO:
        with mock_aws(), Served.at(None) as served:
            yield served
    else:
        with Simulated.entered() as simulated:
            yield simulated


@pytest.fixture
def sdk(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Retrying]:
    if request.param == BOTOCORE:
        yield Botocore(monkeypatch)
    else:
        with Simulated.entered() as simulated:
            yield SimulatedSdk(simulated)


@pytest.fixture
def simulated(aws: Aws) -> Simulated:
    assert isinstance(aws, Simulated)
    return aws
