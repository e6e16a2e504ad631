"""A table of jobs, from the view of the HTTP API or of an operator."""

from collections.abc import Sequence
from datetime import datetime

import click

from tidemill.cli.formatting import DASH, JobView, age, progress_text, visible
from tidemill.cli.output import ID_WIDTH, MIN_TABLE_WIDTH, console, new_table, plain_table, two_line_cell
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
    tenants = [job["tenant"] for job in jobs if "tenant" in job]
    if not screen.is_terminal or screen.width < MIN_TABLE_WIDTH:
        titles: tuple[str, ...] = ("ID", "TYPE", "STATE", "LANE", "ATTEMPTS", "PROGRESS", "AGE")
        lines = [(*row, tenant) for row, tenant in zip(rows, tenants, strict=True)] if tenants else rows
        click.echo(plain_table((*titles, "TENANT") if tenants else titles, lines))
        return
    # Two lines per job, so that ids fit into 80 columns.
    table = new_table()
    table.add_column("ID\nTENANT" if tenants else "ID\nTYPE", min_width=ID_WIDTH, overflow="fold")
    table.add_column("STATE\nTYPE" if tenants else "STATE\nLANE", no_wrap=not tenants, overflow="fold")
    table.add_column("ATTEMPTS\nPROGRESS", overflow="fold")
    table.add_column("AGE", justify="right", no_wrap=True)
    for number, (id_, type_, state, lane, attempts, progress, since) in enumerate(rows):
        table.add_row(
            two_line_cell(id_, tenants[number] if tenants else type_),
            two_line_cell(state, type_ if tenants else lane),
            two_line_cell(attempts, progress),
            visible(since),
        )
    screen.print(table)
