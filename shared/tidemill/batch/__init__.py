"""The built-in job type of batches."""
