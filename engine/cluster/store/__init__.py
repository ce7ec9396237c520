"""The job manager's memory: one SQLite file."""
