"""The audit log: who did what, to what, why, and what changed."""

from __future__ import annotations

from urllib.parse import urlencode

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_safe

from controlplane.audit.queries import COLUMNS, MAX_ROWS, AuditFilter, audit_page, audit_rows
from dashboard import exports
from dashboard.access_forms import AuditForm
from dashboard.answers import checked
from dashboard.views.requests import UserRequest


def _wanted(request: UserRequest) -> tuple[AuditFilter, int | None]:
    asked = checked(AuditForm(request.GET))
    before = asked.pop("before")
    return AuditFilter(**asked), before


@login_required
@require_safe
def page(request: UserRequest) -> HttpResponse:
    """Fifty entries, newest first; `before` is the cursor of the older ones."""
    wanted, before = _wanted(request)
    asked = {name: text for name, text in request.GET.items() if name != "before" and text}
    context = {
        "section": "audit",
        "page": audit_page(request.user, wanted, before),
        "asked": asked,
        "query": urlencode(asked),
        "before": before,
        "max_rows": MAX_ROWS,
    }
    return render(request, "audit/list.html", context)


@login_required
@require_safe
def download(request: UserRequest) -> HttpResponseBase:
    """The same as a CSV file."""
    wanted, _ = _wanted(request)
    return exports.download("csv", "audit", COLUMNS, audit_rows(request.user, wanted))
