"""The engine's version, as snapshots and REST name it."""

from __future__ import annotations

VERSION = "0.1.0"
