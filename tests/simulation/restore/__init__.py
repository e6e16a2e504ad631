"""A restore of the jobs table to an earlier moment, with messages in flight and workers of the former table at work.

The general seeds cannot have this fault: it takes documents back, which their checks forbid. So it has scenarios and
checks of its own. `python -m tests.simulation.restore --seeds 300` plays them.
"""
