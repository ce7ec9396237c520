"""The kinds of operations, by name."""

from __future__ import annotations

from controlplane.operations.contract import Kind
from controlplane.operations.kinds.cancel import Cancel
from controlplane.operations.kinds.cut_over import CutOver
from controlplane.operations.kinds.deploy import Deploy
from controlplane.operations.kinds.discard import Discard
from controlplane.operations.kinds.dispose import Dispose
from controlplane.operations.kinds.import_savepoint import ImportSavepoint
from controlplane.operations.kinds.move import Move
from controlplane.operations.kinds.promotions import PromoteReplay
from controlplane.operations.kinds.replays import AbandonReplay, StartReplay
from controlplane.operations.kinds.rescale import Rescale
from controlplane.operations.kinds.roll_back import RollBackReplay
from controlplane.operations.kinds.savepoint import TakeSavepoint
from controlplane.operations.kinds.stop import Drain, Stop
from controlplane.operations.kinds.upgrade import Rollback, Upgrade
from controlplane.operations.kinds.verify import Verify

_KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Deploy(),
        Stop(),
        Drain(),
        Cancel(),
        TakeSavepoint(),
        Upgrade(),
        Rollback(),
        Rescale(),
        Move(),
        StartReplay(),
        AbandonReplay(),
        PromoteReplay(),
        CutOver(),
        RollBackReplay(),
        Verify(),
        Dispose(),
        Discard(),
        ImportSavepoint(),
    )
}


def kind_of(name: str) -> Kind:
    """The kind of that name."""
    return _KINDS[name]


def kinds() -> tuple[Kind, ...]:
    """Every kind."""
    return tuple(_KINDS.values())
