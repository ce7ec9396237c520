"""Event time over the input channels of one subtask: the smallest watermark of those that speak.

Order    the combined watermark never goes back. A channel that ended holds nobody up.
"""

from __future__ import annotations

from engine.elements import MAX_TIME, MIN_TIME, EndOfInput, Idle, Micros, Watermark

TimeElement = Watermark | Idle | EndOfInput


class InputTimes:
    """Watermark, idleness and end of every input channel."""

    def __init__(self, channels: int) -> None:
        self._watermarks = [MIN_TIME] * channels
        self._idle = [False] * channels
        self._open = channels
        self._told_idle = False
        self.watermark = MIN_TIME
        """The combined watermark that was last said."""

    def on_batch(self, channel: int) -> None:
        """Rows end the idleness of a channel."""
        self._idle[channel] = False
        self._told_idle = False

    def on_watermark(self, channel: int, time: Micros) -> TimeElement | None:
        """Take a watermark; return what the subtask now has to say."""
        self._watermarks[channel] = max(self._watermarks[channel], time)
        self._idle[channel] = False
        return self._combined()

    def on_idle(self, channel: int) -> TimeElement | None:
        """Set a channel aside; return what the subtask now has to say."""
        self._idle[channel] = True
        return self._combined()

    def on_end_of_input(self, channel: int) -> EndOfInput | None:
        """A channel has said its last watermark; EndOfInput when it was the last channel."""
        self._open -= 1
        return EndOfInput() if self._open == 0 else None

    def _combined(self) -> TimeElement | None:
        awake = [time for time, idle in zip(self._watermarks, self._idle, strict=True) if not idle]
        # Channels at the end of input do not count as awake: if all others are idle, so are we.
        if all(time == MAX_TIME for time in awake) and len(awake) < len(self._idle):
            return self._say_idle()
        time = min(awake)
        if time <= self.watermark:
            return None
        self.watermark, self._told_idle = time, False
        return Watermark(time)

    def _say_idle(self) -> Idle | None:
        if self._told_idle:
            return None
        self._told_idle = True
        return Idle()
