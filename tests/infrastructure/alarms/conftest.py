"""The alarms of the app, read once."""

from collections.abc import Callable, Iterable
from functools import cache, partial
from typing import Any
from unittest.mock import patch

import pytest

import stacks.applications.shortener.stack
import tidemill.cdk.pipeline
from tests.infrastructure.alarms.installation import STAGE, Installation, read_installation
from tests.infrastructure.conftest import Synthesise
from tidemill.cdk.alarms.alarm import Entry, add_alarms


@pytest.fixture(scope="session")
def installation(catalogue_of: Callable[..., Installation]) -> Installation:
    return catalogue_of()


@pytest.fixture(scope="session")
def with_archive(catalogue_of: Callable[..., Installation]) -> Installation:
    return catalogue_of(archive="my-archive")


@pytest.fixture(scope="session")
def catalogue_of(synthesise: Synthesise) -> Callable[..., Installation]:
    # Kept, because a second synthesis with the same settings is that of before, and records no entries.
    return cache(partial(_catalogue, synthesise))


def _catalogue(synthesise: Synthesise, **settings: str) -> Installation:
    entries: list[tuple[str, Entry]] = []

    def recording(stack: str) -> Callable[..., Any]:
        def add(scope: Any, catalogue: Iterable[Entry], **options: Any) -> Any:
            found = list(catalogue)
            entries.extend((stack, entry) for entry in found)
            return add_alarms(scope, found, **options)

        return add

    with (
        patch.object(tidemill.cdk.pipeline, "add_alarms", recording("")),
        patch.object(stacks.applications.shortener.stack, "add_alarms", recording("Shortener")),
    ):
        # The address only makes this synthesis another one than that of other tests.
        app = synthesise(stage=STAGE, alarm_email="catalogue@example.com", **settings)
    return read_installation(app, entries)
