"""Reads what AWS delivers for each kind of source: one module for each shape.

A malformed record raises `ValueError`, `LookupError`, `TypeError` or `AttributeError`.
"""
