"""Adds to a click who clicked, as far as that may be kept, and counts it exactly once."""

from dataclasses import asdict

from shortener import clock, composition
from shortener.click import CLICK, VISITORS, Click
from shortener.visitor import enrich
from tidemill import Done, PermanentJobError, Run, job_type


@job_type(CLICK, payload=Click)
def click_enrich(click: Click, run: Run) -> Done:
    if run.tenant != VISITORS:
        # Whoever may submit jobs could otherwise count clicks on the links of others.
        raise PermanentJobError("clicks come from the redirect, and from nobody else")
    visitor = enrich(click.address, click.user_agent)
    writes = composition.clicks().writes(click, visitor, job_id=run.job_id, at=run.submitted_at, now=clock.now())
    return Done(result=asdict(visitor), writes=writes)
