"""How a job is written: environment, streams, keyed streams; and how its graph is captured."""

from __future__ import annotations

from engine.stream.capture import capture
from engine.stream.environment import Environment
from engine.stream.keyed import ConnectedStreams, KeyedStream
from engine.stream.stream import Stream
from engine.stream.windowed import WindowedStream

__all__ = [
    "ConnectedStreams",
    "Environment",
    "KeyedStream",
    "Stream",
    "WindowedStream",
    "capture",
]
