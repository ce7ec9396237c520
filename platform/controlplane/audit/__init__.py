"""Append-only record: who did what, to what, why."""
