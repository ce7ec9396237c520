"""Starts the whole platform on one machine and keeps it running."""
