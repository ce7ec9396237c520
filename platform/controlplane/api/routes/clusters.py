"""Clusters: the engines that jobs run on."""

from __future__ import annotations

from typing import Any

from ninja import Router

from controlplane.api.auth import ApiRequest
from controlplane.api.paging import DEFAULT_LIMIT, Cursor, Limit, Page, page
from controlplane.api.schema.others import ClusterOut
from controlplane.backends.models import Cluster

router = Router(tags=["clusters"])


@router.get("clusters", response=Page[ClusterOut], summary="List clusters")
def list_clusters(
    request: ApiRequest, limit: Limit = DEFAULT_LIMIT, cursor: Cursor = ""
) -> dict[str, Any]:
    """By name."""
    return page(Cluster.present.all(), list, limit, cursor, "name")
