"""One topic of one socket: what came in, what is still to be sent.

    snapshot wanted ──snapshot()──▶ following ──gap in seq──▶ snapshot wanted

A slow browser gets fewer and newer values, never a backlog: patches are merged until the socket's
next tick takes them; events beyond a bound are replaced by a snapshot.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from controlplane.live.fleet import FleetView
from controlplane.live.latest import Snapshot
from controlplane.live.topics import Family, Payload, Shape, Topic

MAX_EVENTS = 200
"""Events and fragments that wait for a slow socket: more are not worth sending one by one."""


@dataclass(slots=True)
class Subscription:
    """A pure state machine; the consumer moves what it returns."""

    topic: Topic
    resume_at: int | None = None
    """Last change that the browser has; None: it has nothing."""
    fleet: FleetView | None = None
    """Whose rows may be seen, when the topic has a row per job."""
    wants_snapshot: bool = True
    seen: int = 0
    """Last change that came in."""
    sent: int = 0
    """Last change that went out."""
    behind: int = 0
    """Change that the store had at the last heartbeat and that had not come in."""
    _patch: Payload = field(default_factory=dict)
    _patch_ts: int = 0
    _urgent: list[Payload] = field(default_factory=list)
    _operation: Payload = field(default_factory=dict)
    """The whole record of an operation: its messages are small and always complete."""

    @property
    def is_urgent(self) -> bool:
        """Whether something waits that should not wait for the tick."""
        waits = self.topic.family is Family.OPERATION and self.seen != self.sent
        return self.wants_snapshot or bool(self._urgent) or waits

    def receive(self, message: dict[str, Any]) -> None:
        """Take in what the channel layer brought."""
        if message["k"] == "html":
            self._receive_html(message)
            return
        seq = message["seq"]
        if self.wants_snapshot or seq <= self.seen:
            return  # the snapshot holds it already, or will
        if seq != self.seen + 1 or len(self._urgent) >= MAX_EVENTS:
            self.want_snapshot()
            return
        self.seen = seq
        if self.topic.shape is Shape.LOG:
            self._urgent.append(
                {"k": "event", "prev": seq - 1, "seq": seq, "ts": message["ts"], "d": message["d"]}
            )
            return
        self._patch_ts = message["ts"]
        self._merge(message["d"])

    def compare(self, seq: int) -> None:
        """Want a snapshot when change `seq` of the store has been missing for two heartbeats."""
        if self.seen < self.behind:  # once may be a message that is just on its way
            self.want_snapshot()
        self.behind = seq

    def want_snapshot(self) -> None:
        """Forget what waits: a snapshot will hold it all."""
        self.wants_snapshot = True
        self.resume_at = None
        self._patch.clear()
        self._urgent = [one for one in self._urgent if one["k"] == "html"][:MAX_EVENTS]

    def snapshot(self, latest: Snapshot, now_ms: int) -> Payload | None:
        """Follow from here; None when the browser has all of it."""
        resumed = self.resume_at == latest.seq
        self.wants_snapshot, self.resume_at = False, None
        self.seen = self.sent = self.behind = latest.seq
        value = self.fleet.whole(latest.value) if self.fleet else latest.value
        if self.topic.family is Family.OPERATION:
            self._operation = dict(value)
        if resumed:
            return None
        return self._message("snap", latest.seq, now_ms, value)

    def urgent(self) -> list[Payload]:
        """Events and fragments, to be sent at once."""
        waiting, self._urgent = self._urgent, []
        for message in waiting:
            self.sent = message.get("seq", self.sent)
        return [{"t": self.topic.name, **message} for message in waiting]

    def tick(self) -> Payload | None:
        """The merged patch since the last tick, if any."""
        if self.wants_snapshot or self.seen == self.sent or self.topic.shape is Shape.LOG:
            return None
        patch, self._patch = self._patch, {}
        message = self._message("patch", self.seen, self._patch_ts, patch) | {"prev": self.sent}
        self.sent = self.seen
        return message

    def _message(self, kind: str, seq: int, ts: int, value: Payload) -> Payload:
        head = {"t": self.topic.name, "seq": seq, "ts": ts}
        if self.topic.family is Family.OPERATION:
            return {**self._operation, "k": "op", **head}
        return {"k": kind, **head, "d": value}

    def _merge(self, patch: Payload) -> None:
        if self.fleet is not None:
            if self.fleet.is_news(patch):
                self.want_snapshot()
                return
            patch = self.fleet.changed(patch)
        if self.topic.family is Family.OPERATION:
            self._operation |= patch
        if self.topic.shape is Shape.RECORD:
            self._patch.update(patch)
            return
        for row, columns in patch.items():
            held = self._patch.get(row)
            self._patch[row] = columns if columns is None or held is None else held | columns

    def _receive_html(self, message: dict[str, Any]) -> None:
        job = message.get("job")
        if self.fleet is not None and job is not None and job not in self.fleet.visible:
            return
        if len(self._urgent) < MAX_EVENTS:
            self._urgent.append({key: message[key] for key in ("k", "target", "swap", "html")})
