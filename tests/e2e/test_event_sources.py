"""Sources through the embedded AWS: its services deliver records, and a record that comes twice is one event."""

import json
import shutil
from pathlib import Path

from tests.e2e.copied_app import copy_app, run_python
from tests.support.source_records import bus_event, change, message, s3_event, sns_message

FILES = Path(__file__).with_name("event_sources")


def test_each_record_of_each_source_reaches_its_consumer_once(tmp_path: Path) -> None:
    copy_app(tmp_path)
    shutil.copyfile(FILES / "jobs.py", tmp_path / "functions" / "jobs" / "facts.py")
    shutil.copyfile(FILES / "stack.py", tmp_path / "stacks" / "applications" / "sources.py")
    records = {
        "bus": message(bus_event("called")),
        "uploads": message(s3_event("called")),
        "topic": message(sns_message("called")),
        "items": change("called", "1"),
    }

    found = json.loads(run_python(tmp_path, str(FILES / "story.py"), json.dumps(records)))

    assert found["noted"] == sorted(f'"{source} {how}"' for source in records for how in ("sent", "called"))
    assert found["events"] == len(found["noted"])
