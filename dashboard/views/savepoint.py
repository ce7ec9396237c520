"""One savepoint: what it holds, what is done with it, and in what it differs from another."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from controlplane.access.lookup import allows, savepoint_for
from controlplane.access.models import Role
from controlplane.snapshots import actions, inspection
from controlplane.snapshots.catalogue import one_of
from dashboard.answers import checked, said, started
from dashboard.savepoint_forms import DeleteForm, ExpiryForm, LabelForm, PinForm, RowsForm
from dashboard.views.requests import UserRequest


def _back(savepoint_id: int) -> str:
    return reverse("dashboard:savepoint", args=[savepoint_id])


@login_required
@require_safe
def page(request: UserRequest, savepoint_id: int) -> HttpResponse:
    """All that is known of it."""
    savepoint, now = savepoint_for(request.user, savepoint_id), timezone.now()
    row, others = one_of(savepoint, now)
    return render(
        request,
        "savepoints/one.html",
        {
            "section": "savepoints",
            "job": savepoint.job,
            "sp": savepoint,
            "row": row,
            "others": others,
            "may_operate": allows(request.user, savepoint.job.team, Role.OPERATOR),
        },
    )


@login_required
@require_safe
def rows(request: UserRequest, savepoint_id: int) -> HttpResponse:
    """Some rows of one state."""
    savepoint = savepoint_for(request.user, savepoint_id)
    asked = checked(RowsForm(request.GET))
    found = inspection.read_rows(
        savepoint, request.user, asked["operator"], asked["state"], asked["key"]
    )
    context = {"sp": savepoint, "found": found, "asked": asked, "most": inspection.MOST_ROWS}
    return render(request, "savepoints/_rows.html", context)


@login_required
@require_safe
def diff(request: UserRequest, savepoint_id: int, other_id: int) -> HttpResponse:
    """In what another savepoint differs from it."""
    left = savepoint_for(request.user, savepoint_id)
    right = savepoint_for(request.user, other_id)
    return render(
        request,
        "savepoints/diff.html",
        {
            "section": "savepoints",
            "job": left.job,
            "left": left,
            "right": right,
            "sides": (left, right),
            "changes": inspection.contents_diff(left.contents, right.contents),
            "compared": inspection.compare(left, right, request.user),
        },
    )


@login_required
@require_POST
def verify(request: UserRequest, savepoint_id: int) -> HttpResponse:
    """Let the engine read every byte of it."""
    savepoint = savepoint_for(request.user, savepoint_id)
    key = request.POST.get("idempotency_key", "")[:100]
    operation = actions.verify_savepoint(savepoint, request.user, key)
    return started(request, operation, _back(savepoint_id))


@login_required
@require_POST
def label(request: UserRequest, savepoint_id: int) -> HttpResponse:
    """Name it."""
    savepoint = savepoint_for(request.user, savepoint_id)
    actions.set_label(savepoint, request.user, checked(LabelForm(request.POST))["label"])
    return said(request, f"Savepoint {savepoint_id} is named", _back(savepoint_id), move=True)


@login_required
@require_POST
def pin(request: UserRequest, savepoint_id: int) -> HttpResponse:
    """Keep it whatever the rules say, or not."""
    savepoint = savepoint_for(request.user, savepoint_id)
    pinned = checked(PinForm(request.POST))["pinned"] == "1"
    actions.set_pinned(savepoint, request.user, pinned=pinned)
    sentence = "is pinned: nothing deletes it" if pinned else "is left to the rules"
    return said(request, f"Savepoint {savepoint_id} {sentence}", _back(savepoint_id), move=True)


@login_required
@require_POST
def expiry(request: UserRequest, savepoint_id: int) -> HttpResponse:
    """Say until when it is kept."""
    savepoint = savepoint_for(request.user, savepoint_id)
    form = ExpiryForm(request.POST)
    checked(form)
    actions.set_expiry(savepoint, request.user, form.moment())
    return said(request, f"Savepoint {savepoint_id} is changed", _back(savepoint_id), move=True)


@login_required
@require_POST
def delete(request: UserRequest, savepoint_id: int) -> HttpResponse:
    """Mark it for deletion, delete it at once, or end its record only."""
    savepoint = savepoint_for(request.user, savepoint_id)
    asked = checked(DeleteForm(request.POST, name=str(savepoint_id)))
    if asked["how"] == "detach":
        actions.detach_savepoint(savepoint, request.user, asked["reason"])
        sentence = f"Savepoint {savepoint_id} left the catalogue; its files stay"
    else:
        at_once = asked["how"] == "now"
        actions.mark_savepoint(savepoint, request.user, asked["reason"], at_once=at_once)
        sentence = f"Savepoint {savepoint_id} is marked for deletion"
    to = reverse("dashboard:savepoints", args=[savepoint.job.name])
    return said(request, sentence, to, move=True)
