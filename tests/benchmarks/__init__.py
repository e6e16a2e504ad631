"""`make bench` measures Tidemill beside the textbook build, on the same work and in one run. docs/performance.md."""
