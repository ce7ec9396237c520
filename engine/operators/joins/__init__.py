"""Joins of keyed streams, and lookups in tables."""
