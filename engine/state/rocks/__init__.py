"""Keyed state on disk: the RocksDB backend. `from engine.state.rocks import RocksBackend`."""

from __future__ import annotations

from engine.state.rocks.backend import RocksBackend

__all__ = ["RocksBackend"]
