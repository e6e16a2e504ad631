"""Evaluates the alarms of the catalogue on the embedded AWS, whose own evaluator knows neither math nor dimensions."""
