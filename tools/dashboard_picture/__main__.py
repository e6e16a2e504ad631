"""`python -m tools.dashboard_picture PNG` plays the demo on an embedded AWS, and draws the dashboard with its data."""

import contextlib
import json
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from rich.console import Console

from demo import SAMPLE
from demo.access_log import read
from demo.scenario import Scenario
from demo.screen import Screen
from tidemill.local.alarm_watch.installed_alarms import resolver
from tidemill.local.alarm_watch.setup import Templates, templates_with_all_alarms, watch_of
from tidemill.local.alarm_watch.watch import Watch
from tidemill.local.alarms.template import text
from tidemill.local.lifecycle import App, deployed
from tidemill.local.terminal_command import run
from tidemill.local.wait import wait_until
from tools.dashboard_picture.body import CountByVersion, Graph, Statistic, widgets
from tools.dashboard_picture.data import Data
from tools.dashboard_picture.picture import draw
from tools.dashboard_picture.steady_load import steady_load

#: A minute of the picture. The demo takes about one real minute.
MINUTE_SECONDS: Final = 4.0
_PATIENCE_SECONDS: Final = 300


def main() -> int:
    (path,) = sys.argv[1:]
    return run(lambda console: _picture(Path(path), console))


def _picture(path: Path, console: Console) -> int:
    with deployed(console) as app:
        templates = templates_with_all_alarms(app.folder, console)
        body = _body(app, templates)
        contents = [content for _, content in widgets(body)]
        lines = [line for graph in contents if isinstance(graph, Graph) for line in graph.lines]
        metrics = {line.metric for line in lines if isinstance(line, Statistic)}
        watch = watch_of(app.folder, app.client, templates, minute_seconds=MINUTE_SECONDS, also=metrics)
        screen = Screen(console)
        scenario = Scenario(app, screen)
        with _ticking(watch):
            # The functions then run already, and the picture shows no cold starts.
            wait_until(lambda: watch.up_since is not None, _PATIENCE_SECONDS, "the first canary of each lane")
            first = watch.minute_of(time.time())
            scenario.play(list(read(SAMPLE)), log_name=SAMPLE.name)
            steady_load(app)
        screen.verdict(scenario.checks)
        if not scenario.checks.all_hold:
            return 1
        counts = [content for content in contents if isinstance(content, CountByVersion)]
        data = Data(
            first=first,
            end=watch.minute_of(time.time()),
            minute_seconds=MINUTE_SECONDS,
            values=watch.values.by_minute(),
            states=watch.states,
            versions={count.log_group: _versions(app, count.log_group, watch) for count in counts},
        )
        number = draw(body, data, path)
    console.print(f"{path}: {number} widgets", highlight=False)
    return 0


def _body(app: App, templates: Templates) -> Mapping[str, Any]:
    """The body of the only dashboard, with the names of deployed resources."""
    ((stack, dashboard),) = (
        (stack, resource)
        for stack, template in templates.items()
        for resource in template["Resources"].values()
        if resource["Type"] == "AWS::CloudWatch::Dashboard"
    )
    resolve = resolver(stack, app.client("cloudformation"))
    body: Mapping[str, Any] = json.loads(text(dashboard["Properties"]["DashboardBody"], resolve))
    return body


@contextlib.contextmanager
def _ticking(watch: Watch) -> Iterator[None]:
    """Evaluate the alarms once in each minute of the picture, and once more after the block."""
    ended = threading.Event()

    def tick() -> None:
        while not ended.wait(MINUTE_SECONDS - time.time() % MINUTE_SECONDS):
            list(watch.tick(time.time()))

    ticking = threading.Thread(target=tick)
    ticking.start()
    try:
        yield
    finally:
        ended.set()
        ticking.join()
    list(watch.tick(time.time()))


def _versions(app: App, log_group: str, watch: Watch) -> Mapping[str, Mapping[int, int]]:
    """By version and minute: the number of runs that began on the version."""
    found: dict[str, dict[int, int]] = {}
    for page in app.client("logs").get_paginator("filter_log_events").paginate(logGroupName=log_group):
        for event in page["events"]:
            fields = json.loads(event["message"]) if event["message"].startswith("{") else {}
            if fields.get("message") == "claimed" and (version := fields.get("version")):
                counts = found.setdefault(version, {})
                minute = watch.minute_of(event["timestamp"] / 1000)
                counts[minute] = counts.get(minute, 0) + 1
    return found


if __name__ == "__main__":
    sys.exit(main())
