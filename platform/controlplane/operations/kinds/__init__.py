"""The kinds of operations, by name."""

from __future__ import annotations

from controlplane.operations.contract import Kind
from controlplane.operations.kinds.cancel import Cancel
from controlplane.operations.kinds.deploy import Deploy
from controlplane.operations.kinds.dispose import Dispose
from controlplane.operations.kinds.import_savepoint import ImportSavepoint
from controlplane.operations.kinds.replays import AbandonReplay, StartReplay
from controlplane.operations.kinds.savepoint import TakeSavepoint
from controlplane.operations.kinds.stop import Stop
from controlplane.operations.kinds.upgrade import Upgrade
from controlplane.operations.kinds.verify import Verify

_KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Deploy(),
        Stop(),
        Cancel(),
        TakeSavepoint(),
        Upgrade(),
        StartReplay(),
        AbandonReplay(),
        Verify(),
        Dispose(),
        ImportSavepoint(),
    )
}


def kind_of(name: str) -> Kind:
    """The kind of that name."""
    return _KINDS[name]
