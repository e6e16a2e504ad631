"""The small scope, whole: every schedule of two jobs, two workers and at most three faults, with the code that ships.

Seeds go far and see little of each place; this stays near and sees all of it. A schedule is an order of calls to AWS
and what became of each. All of a scenario's schedules are played, each in a world of its own from the beginning, and
looked at by the same checks as the seeds. At the end of each, every job must have ended as it may, without anybody
looking after it: reconcile is no part of it.

What is chosen. At each moment every invocation, and every person's tool, stands before its next call. Any of them can
be the next to be answered, and its call comes to any of these fates (`steps.py`): answered; its process killed before
or after it; the answer lost and the call sent again; no answer to any try; no answer from the table any more; in
conflict with others' transactions until it gives up; a transaction applied only when others have moved. A message may
be delivered once more, to the other worker, and to one whose clock is ahead of all leases or behind them; that it is
deleted may be lost. Whichever of several messages may be the next, and is.

What is not, because it comes to the same:
- An answer on its way: between two calls an actor touches nothing that others see.
- A throttled call, a slow one and a late message: a call that was held for longer. So what the SDK waits takes no
  time at all, delays that chance draws are none, and time goes on only when nobody has a call to make.
- A message that publish sends twice or late: delivered twice, or its worker held. Publish's calls to the table are put
  in every order only where it says so; elsewhere they follow the change at once.
- Two orders of steps that touch nothing in common (`footprints.py`), and a state that another schedule has come to:
  `fingerprint.py` says what makes two the same. Documents are told apart by their whole history, but steps that were
  swapped leave times that differ by milliseconds, and those are taken for the same.

What is left out: environments are never reused, clocks are right or far off, a call that a transaction stands in the
way of meets no further fault, and nothing is lost without a trace. Those are for the seeds.
"""
