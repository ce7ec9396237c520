"""What the catalogue keeps of a savepoint's manifest: whom it is of, and what is in it.

    manifest of the engine ─contents_of─▶ {"engine_version", "job_name", "plan_hash", "operators": [
        {"uid", "name", "parallelism", "max_parallelism", "states": [
            {"name", "kind", "rows", "size_bytes", "keys", "values"}]}]}

The list of files is left out: it grows with the parallelism, and only the engine reads files.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_STATE = ("name", "kind", "rows", "size_bytes", "keys", "values")
_OPERATOR = ("uid", "name", "parallelism", "max_parallelism")


def contents_of(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The part that is kept."""
    return {
        "engine_version": manifest["engine_version"],
        "format_version": manifest["format_version"],
        "job_name": manifest["job_name"],
        "engine_job_id": manifest["job_id"],
        "plan_hash": manifest["plan_hash"],
        "operators": [
            {name: operator[name] for name in _OPERATOR}
            | {"states": [{name: state[name] for name in _STATE} for state in operator["states"]]}
            for operator in manifest["operators"]
        ],
    }
