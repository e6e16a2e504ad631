"""The small scope: every schedule of two jobs, two workers and at most three faults, with the shipped code.

Seeds explore far and cover each place thinly. The small scope stays small and covers everything. A schedule is an order
of calls to AWS and the fate of each call. Each schedule of a scenario runs from the beginning in a world of its own,
with the checks of the seeds. Once nothing moves, wake is called at most three times. Then every job must have ended as
the scenario allows, without reconcile.

Choices. At each moment every invocation and every tool waits before its next call. Any of them may be next, and its
call gets any of these fates (`participants.py`): answered; its process killed before or after it; the response lost and
the call sent again; no response to any retry; no response from the table any more; in conflict with other transactions
until it gives up; a transaction applied only after others have run. SQS may deliver a message once more, to the other
worker, whose clock may be ahead of all leases or behind them. The delete of a message may be lost. Of several messages,
each one is the next in some schedule.

Not chosen, because it is equivalent to a choice above:
- A response in transit: between two calls an actor touches no shared state.
- A throttled call, a slow call and a late message: the same as a call held for longer. So the pauses of the SDK take no
  time, random delays are zero, and time advances only when no actor has a call to make.
- A message that publish sends twice or late: the same as a second delivery, or as a worker held for longer. Calls of
  publish to the table are ordered only in scenarios that direct publish; elsewhere they follow the change at once.
- Two orders of independent steps (`touched_items.py`), and a state that another schedule has reached. `fingerprint.py`
  defines when two states are equal. It compares the whole history of each document, but treats times that differ only
  because independent steps were swapped as equal.

Left to the seeds: pauses, and the read of the runtime configuration, which is empty here; reused environments; clocks
that are slightly off; further faults in a call that a transaction blocks; losses without a trace.
"""
