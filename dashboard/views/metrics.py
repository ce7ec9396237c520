"""Metrics of a job: choose some, see them along time; the address keeps the choice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse, HttpResponseBase, JsonResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_safe

from controlplane.access.lookup import job_for
from controlplane.jobs.metric_choice import DEFAULT, MINUTES, Chosen, chosen_of
from controlplane.jobs.metric_page import Figure, figures, metric_page, series_json
from controlplane.jobs.queries import current_run, job_frame
from dashboard.exports import download
from dashboard.views.job_pages import job_page
from dashboard.views.requests import UserRequest, chosen, words_of

COLUMNS = ("figure", "place", "unit", "time_ms", "value", "min", "mean", "max")


@login_required
@require_safe
def page(request: UserRequest, name: str) -> HttpResponse:
    """The chooser, the plots and a table of the present values."""
    job = job_for(request.user, name)
    if added := request.GET.get("add"):
        return _with(request, name, added + request.GET.get("of", ""))
    frame = job_frame(job, request.user)
    found = metric_page(
        job, frame.run, _chosen(request), words_of(request, "where"), _minutes(request)
    )
    return job_page(
        request,
        "jobs/metrics.html",
        "metrics",
        job,
        frame,
        page=found,
        ranges=MINUTES,
        plots=series_json(found.figures),
    )


@login_required
@require_safe
def series(request: UserRequest, name: str) -> JsonResponse:
    """What the plots draw, asked for every few seconds."""
    return JsonResponse(series_json(_figures(request, name)))


@login_required
@require_safe
def export(request: UserRequest, name: str, shape: str) -> HttpResponseBase:
    """The points of what is chosen, and present values of what is not kept."""
    job = job_for(request.user, name)
    return download(shape, f"{job.name}-metrics", COLUMNS, _rows(_figures(request, name)))


def _with(request: UserRequest, name: str, added: str) -> HttpResponse:
    """The page's own address with one more figure in it."""
    query = request.GET.copy()
    for part in ("add", "of"):
        query.pop(part, None)
    query.appendlist("m", added)
    return redirect(f"{reverse('dashboard:metrics', args=[name])}?{query.urlencode()}")


def _chosen(request: UserRequest) -> list[Chosen]:
    return chosen_of(request.GET.getlist("m")) or chosen_of(DEFAULT)


def _minutes(request: UserRequest) -> str:
    return chosen(request, "minutes", MINUTES, "60")


def _figures(request: UserRequest, name: str) -> tuple[Figure, ...]:
    job = job_for(request.user, name)
    run = current_run(job)
    return figures(job, run, _chosen(request), _minutes(request))


def _rows(found: Sequence[Figure]) -> Iterator[dict[str, Any]]:
    for one in found:
        head = {"figure": one.label, "place": one.place, "unit": one.format}
        for at, value in one.points:
            yield {**head, "time_ms": at, "value": value}
        if one.now is not None and not one.is_kept:
            spread = {"min": one.now.low, "mean": one.now.mean, "max": one.now.high}
            yield {**head, "time_ms": one.at_ms, **spread}
