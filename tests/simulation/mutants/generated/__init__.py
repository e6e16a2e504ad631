"""Mutants that no author chose: small changes to the syntax trees of the protocol, and a seeded sample of them.

This package imports no module of the engine: a mutant is applied before its module is first imported.
"""
