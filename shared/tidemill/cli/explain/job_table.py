"""A table of jobs, from the view of the HTTP API or of an operator."""

from collections.abc import Sequence
from datetime import datetime

import click

from tidemill.cli.formatting import DASH, JobView, age, progress_text, visible
from tidemill.cli.output import ID_WIDTH, MIN_TABLE_WIDTH, console, new_table, plain_table, tall_cell
from tidemill.system import clock


def show_jobs(jobs: Sequence[JobView]) -> None:
    """With a column for the tenant, if the jobs have one."""
    screen = console()
    now = clock.now()
    rows = [
        (
            job["id"],
            job["type"],
            job["state"],
            job["lane"],
            str(job["attempt"]),
            progress_text(job) or DASH,
            age(now - datetime.fromisoformat(job["created_at"])),
        )
        for job in jobs
    ]
    tags = [", ".join(job["tags"]) for job in jobs]
    tenants = [job["tenant"] for job in jobs if "tenant" in job]
    if not screen.is_terminal or screen.width < MIN_TABLE_WIDTH:
        titles = ["ID", "TYPE", "STATE", "LANE", "ATTEMPTS", "PROGRESS", "AGE", "TAGS"]
        lines = [[*row, tagged or DASH] for row, tagged in zip(rows, tags, strict=True)]
        if tenants:
            titles.append("TENANT")
            lines = [[*line, tenant] for line, tenant in zip(lines, tenants, strict=True)]
        click.echo(plain_table(titles, lines))
        return
    # Two lines per job, so that ids fit into 80 columns, and a third one for its tags.
    table = new_table()
    title = ("ID\nTENANT" if tenants else "ID\nTYPE") + "\nTAGS" * any(tags)
    table.add_column(title, min_width=ID_WIDTH, overflow="fold")
    table.add_column("STATE\nTYPE" if tenants else "STATE\nLANE", no_wrap=not tenants, overflow="fold")
    table.add_column("ATTEMPTS\nPROGRESS", overflow="fold")
    table.add_column("AGE", justify="right", no_wrap=True)
    for number, (id_, type_, state, lane, attempts, progress, since) in enumerate(rows):
        table.add_row(
            tall_cell(id_, *filter(None, (tenants[number] if tenants else type_, tags[number]))),
            tall_cell(state, type_ if tenants else lane),
            tall_cell(attempts, progress),
            visible(since),
        )
    screen.print(table)
