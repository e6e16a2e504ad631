"""Work for which one run has too little time, or of which a part stands still: each run must come further.

The seeds have a few jobs and whole minutes for them, so a run that begins with the same part each time costs them a
moment. Each play here takes the time, or keeps a part busy for longer than the play. `python -m
tests.simulation.progress` plays all of them.
"""
