"""Other job systems under the same load as Tidemill: `python -m tests.benchmarks.peers`.

`phases` runs the load of `load` against each `system.System`, and `report` prints what `latency` and `cpu` measured.
The programs of a system (its worker, and what submits its jobs) run in processes of their own, with its packages.
"""
