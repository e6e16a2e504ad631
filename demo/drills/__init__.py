"""Drills: each breaks a deployed stage, sees its alarm fire, and fixes it with the commands of the runbook.

A drill submits jobs before, during and after the incident, and each of them must end once, with one effect.
`python -m demo.drills NAME` runs one, and `all` runs all. A drill knows its stage only by `stage.Stage`.
"""
