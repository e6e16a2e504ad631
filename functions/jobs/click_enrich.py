"""Adds the properties of the visitor to a click, and counts the click exactly once.

Of network and user agent it keeps the country and the names of browser, system and device. The rest goes with the job.
"""

from dataclasses import asdict

from shortener import clock, composition
from shortener.click import CLICK, KEPT, Click
from shortener.names import VISITORS
from shortener.visitor import enrich
from tidemill import Done, Lane, PermanentJobError, Run, job_type


@job_type(CLICK, payload=Click, lane=Lane.BULK, retention_days=KEPT.days)
def click_enrich(click: Click, run: Run) -> Done:
    if run.tenant != VISITORS:
        # Otherwise a caller that may submit jobs could count clicks on the links of other tenants.
        raise PermanentJobError("only the redirect may submit clicks; follow the link instead")
    visitor = enrich(click.address, click.user_agent)
    writes = composition.clicks().writes(click, visitor, job_id=run.job_id, at=run.submitted_at, now=clock.now())
    return Done(result=asdict(visitor), writes=writes)
