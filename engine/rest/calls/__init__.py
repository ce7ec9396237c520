"""Requests of the client, one file for each subject."""
