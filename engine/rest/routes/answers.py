"""Answers that several topics share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from starlette.requests import Request
from starlette.responses import JSONResponse

from engine.rest.errors import BadRequest
from engine.rest.model.jobs import MetricValue
from engine.rest.parsing import query_list
from engine.rest.render.metrics import AGGREGATIONS, WITHOUT_SKEW, aggregate


def triggered(trigger_id: str, status: int = 202) -> JSONResponse:
    """The answer to a command that goes on: where to poll."""
    return JSONResponse({"request-id": trigger_id}, status_code=status)


def aggregated(
    request: Request,
    sources: Sequence[Mapping[str, MetricValue]],
    by_default: Sequence[str] = WITHOUT_SKEW,
) -> list[dict[str, object]]:
    """Metrics over several sources, as `get` and `agg` of the query ask for."""
    wanted = query_list(request, "get")
    aggregations = query_list(request, "agg") or list(by_default)
    for name in aggregations:
        if name not in AGGREGATIONS:
            allowed = ", ".join(AGGREGATIONS)
            msg = f"agg must be some of {allowed}: got {name[:80]!r}"
            raise BadRequest(msg)
    return aggregate(sources, wanted, aggregations)
