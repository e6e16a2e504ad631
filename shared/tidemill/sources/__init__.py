"""Reads what AWS delivers for each kind of source: one module for each shape. Each raises `MalformedRecordError`."""
