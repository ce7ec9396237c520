"""Keyed state: descriptors, backends, columnar runs."""
