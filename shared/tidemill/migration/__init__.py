"""The job type of `tidemill migrate`. Every stage adds this package to its own."""
