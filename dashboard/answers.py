"""Answers to forms: the same wish works by htmx and by a plain POST.

started(…)   an operation began: 202 and a toast that follows it, or back to the page
said(…)      it is done: a toast, or back to the page with the sentence on it
checked(…)   a form's cleaned values, or Refused with its first sentence
"""

from __future__ import annotations

import json
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from controlplane.access.errors import Refused
from controlplane.operations.models import Operation
from controlplane.operations.queries import title_of


def checked(form: forms.Form) -> dict[str, Any]:
    """The form's values. Raises Refused (400) with one sentence per field."""
    if form.is_valid():
        return form.cleaned_data
    fields = {name: str(errors[0]) for name, errors in form.errors.items()}
    raise Refused(400, "invalid", next(iter(fields.values())), fields)


def started(
    request: HttpRequest, operation: Operation, to: str, *, move: bool = False
) -> HttpResponse:
    """An operation began; with `move` the page that follows it is another one."""
    if not request.headers.get("HX-Request"):
        return redirect(to)
    if move:
        return _news(200, {"HX-Redirect": to})
    told = {"operation": {"id": str(operation.pk), "title": title_of(operation)}}
    return _news(202, {"HX-Trigger": json.dumps(told)})


def said(request: HttpRequest, sentence: str, to: str, *, move: bool = False) -> HttpResponse:
    """Something is done."""
    if not request.headers.get("HX-Request"):
        messages.success(request, sentence)
        return redirect(to)
    if move:
        messages.success(request, sentence)
        return _news(200, {"HX-Redirect": to})
    return _news(200, {"HX-Trigger": json.dumps({"said": sentence})})


def _news(status: int, headers: dict[str, str]) -> HttpResponse:
    response = HttpResponse(status=status)
    response["HX-Reswap"] = "none"
    for name, value in headers.items():
        response[name] = value
    return response
