"""Chaos: a real cluster that is hurt at moments that a seed chooses; the output must not change."""
