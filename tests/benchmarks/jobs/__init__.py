"""The job types of the benchmark."""
