"""Operators, a room for each kind of them.

contract.py    what an operator is, and what it sees
expressions.py what all of them do with the expressions of an author
late.py        which rows come too late, and where they go
columns/       each row by itself, whole frames at once
records/       functions of single rows, with states and timers
asking/        asynchronous enrichment
windows/       aggregates over windows of event time; rows/ keeps the rows themselves
joins/         joins of keyed streams, lookups in tables
sources/       splits, their event time
sink.py        the end of a chain
"""
