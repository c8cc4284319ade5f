"""Damaged and hostile files, made at random from a seed, and what must become of them.

``python -m tests.fuzz readers --runs 20000`` and ``... models --runs 20000`` do the
long runs; the suite does short ones. Cases run in a process of their own, so that a crash is
counted and not suffered.
"""
