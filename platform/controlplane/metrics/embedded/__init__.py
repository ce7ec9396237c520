"""The embedded series store: rows that become blocks, and roll-ups of them, in one SQLite file."""
