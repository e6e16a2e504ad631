"""The job type with grouped commit. A package of its own, since the cold start is measured without it."""
