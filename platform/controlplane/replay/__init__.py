"""Reprocessing from a savepoint beside the live job."""
