"""What more than one folder of tests shares: the app, deployed once a session on an embedded AWS of its own."""

from collections.abc import Iterator

import pytest

from local.stack import App, deployed


@pytest.fixture(scope="session")
def app() -> Iterator[App]:
    """Deployed with the real CDK command line when the first test asks for it, and stopped with the session."""
    with deployed() as app:
        yield app
