"""Connectors: one file each, all against `contract.py`, none knowing another."""
