"""What a job is and how it may change. Standard library only: no I/O, clock, randomness or logging."""
