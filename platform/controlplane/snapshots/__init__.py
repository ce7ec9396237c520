"""Checkpoint history, savepoint catalogue and schedules."""
