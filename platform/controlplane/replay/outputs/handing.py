"""All outputs of a replay, handed over at once: what its rows say of each, done by its kind.

Errors   OutputUnreadable for the first that cannot be handed over; those before it have been, and
         again does no harm.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from controlplane.metrics import exchange as points
from controlplane.metrics.influx import settings_here
from controlplane.metrics.store import embedded_store
from controlplane.moments import epoch_us
from controlplane.replay.comparison.compare import Terms
from controlplane.replay.models import Replay, ReplayOutput
from controlplane.replay.outputs import exchange as files
from controlplane.replay.outputs.tables import OutputUnreadable
from controlplane.replay.outputs.targets import FILES, POINTS, READABLE, Target

State = ReplayOutput.Exchange


def create_outputs(replay: Replay, targets: Sequence[Target]) -> None:
    """A row for each sink of the replay's plan, which names the places beside the targets."""
    for target in targets:
        terms = target.terms
        ReplayOutput.objects.get_or_create(
            replay=replay,
            uid=target.uid,
            defaults={
                "name": target.name,
                "kind": target.kind,
                "place": target.place.removesuffix(f"@{replay.name}"),
                "beside": target.place,
                "bucket": target.bucket,
                "keys": [] if terms is None else list(terms.keys),
                "time_column": "" if terms is None else terms.time,
                "why_not": target.why_not or _elsewhere(target),
            },
        )


def _elsewhere(target: Target) -> str:
    """Points that the embedded store does not have can be neither removed nor put back."""
    if target.kind == POINTS and settings_here() is not None:
        return "its points are in an InfluxDB server; only those of the embedded store are compared"
    return ""


def terms_of(output: ReplayOutput) -> Terms:
    """How its rows are compared."""
    absolute, relative = (
        {name: one[how] for name, one in output.tolerance.items() if how in one}
        for how in ("absolute", "relative")
    )
    return Terms(tuple(output.keys), output.time_column, absolute, relative)


def target_of(output: ReplayOutput) -> Target:
    """The sink, as its row says."""
    return Target(
        output.uid, output.name, output.kind, output.place, terms_of(output), output.bucket
    )


def exchangeable(replay: Replay) -> list[ReplayOutput]:
    """The outputs that can be handed over."""
    return list(replay.outputs.filter(why_not="", kind__in=READABLE))


def swap_all(replay: Replay) -> None:
    """Put what the replay has written in the place of what it corrects."""
    since = epoch_us(replay.event_time_start)
    if since is None:
        msg = f"outputs of {replay} cannot be exchanged: its savepoint has no event time"
        raise OutputUnreadable(msg)
    for output in exchangeable(replay):
        if output.kind == FILES:
            files.swap(Path(output.place), Path(output.beside), terms_of(output), since)
        else:
            _swap_points(output)


def restore_all(replay: Replay, runs: Sequence[str]) -> None:
    """Put back what was there before; `runs`: whose rows are not the old version's."""
    for output in exchangeable(replay):
        if output.kind == FILES:
            files.restore(Path(output.place), Path(output.beside), runs)
        elif replay.cut_at is None:
            _restore_points(output)
        else:
            _take_points_out(output)


def _swap_points(output: ReplayOutput) -> None:
    """1. Keep what gives way. 2. Put the new points in its place."""
    store, bucket = embedded_store(), output.bucket
    since = points.first_ms(store, bucket, output.beside)
    if since is None:
        return
    if output.exchange == State.NONE:
        points.keep(store, bucket, output.place, since, f"{output.beside}.old")
        _note(output, State.KEPT)
    if output.exchange == State.KEPT:
        points.replace(store, bucket, output.place, since, output.beside)
        _note(output, State.SWAPPED)


def _restore_points(output: ReplayOutput) -> None:
    """1. Keep what the new version wrote. 2. Put the old points back."""
    store, bucket = embedded_store(), output.bucket
    since = points.first_ms(store, bucket, output.beside)
    if since is None or output.exchange in (State.NONE, State.RESTORED):
        return
    if output.exchange != State.RETURNING:
        points.keep(store, bucket, output.place, since, f"{output.beside}.new")
        _note(output, State.RETURNING)
    points.replace(store, bucket, output.place, since, f"{output.beside}.old")
    _note(output, State.RESTORED)


def _take_points_out(output: ReplayOutput) -> None:
    """1. Keep what the new version wrote. 2. Take it out; where it begins is not known, leave it:
    the old version writes its own points over those with the same tags and time.
    """
    store = embedded_store()
    if output.new_from is None or output.exchange == State.RESTORED:
        return
    since_ms = epoch_us(output.new_from) / 1000
    if output.exchange != State.RETURNING:
        points.keep(store, output.bucket, output.place, since_ms, f"{output.beside}.new")
        _note(output, State.RETURNING)
    store.remove(output.bucket, output.place, since_ms)
    _note(output, State.RESTORED)


def _note(output: ReplayOutput, state: ReplayOutput.Exchange) -> None:
    """Each step is noted when it is done, and may be done twice."""
    output.exchange = state
    output.save(update_fields=["exchange"])
