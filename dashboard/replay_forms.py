"""Forms of a new replay: its choices in the address, and the wish to start it; see `forms.py`."""

from __future__ import annotations

from typing import Any

from django import forms

from controlplane.access.errors import Refused
from controlplane.replay.tuning import Tuning
from controlplane.replay.wizard import STEPS
from dashboard.forms import AbandonForm, LimitField, Wish

UNTIL = "the end must be a time in UTC, such as 2013-06-01 00:00"
TIME = "the time must be in UTC, such as 2013-06-01 00:00"
WITHIN = "give seconds behind the live job; empty: as its pace says"
LEVEL = "give seconds of being level, such as 300"
BACK = "give days to roll back in, such as 7"
TERMS = ("level_within_s", "level_for_s", "back_days")
SUBTASKS = "parallelism must be a whole number from 1 to 128"


class Choices(forms.Form):
    """What is the same in the address and in the wish."""

    parallelism = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=128,
        error_messages={"invalid": SUBTASKS, "min_value": SUBTASKS, "max_value": SUBTASKS},
    )
    limit = LimitField()
    until = forms.DateTimeField(required=False, error_messages={"invalid": UNTIL})
    level_within_s = forms.FloatField(required=False, error_messages={"invalid": WITHIN})
    level_for_s = forms.FloatField(required=False, error_messages={"invalid": LEVEL})
    back_days = forms.FloatField(required=False, error_messages={"invalid": BACK})

    def clean(self) -> dict[str, Any]:
        """Its terms in one; what is left out is as it is by itself."""
        asked = dict(super().clean() or {})
        given = {name: asked[name] for name in TERMS if asked.get(name) is not None}
        try:
            asked["tuning"] = Tuning(**given)
        except Refused as refused:
            for name, sentence in refused.fields.items():
                self.add_error(name, sentence)
        return asked


class PlanForm(Choices):
    """The address of a step."""

    step = forms.ChoiceField(choices=[(name, "") for name in STEPS], required=False)
    sp = forms.IntegerField(required=False)
    version = forms.IntegerField(required=False)
    sink = forms.ChoiceField(choices=[("shadow", ""), ("none", "")], required=False)
    clock = forms.ChoiceField(choices=[("event", ""), ("wall", "")], required=False)
    at = forms.DateTimeField(required=False, error_messages={"invalid": TIME})


class TuneForm(forms.Form):
    """When a replay has caught up, and how long it can be rolled back."""

    level_within_s = forms.FloatField(required=False, error_messages={"invalid": WITHIN})
    level_for_s = forms.FloatField(error_messages={"invalid": LEVEL})
    back_days = forms.FloatField(error_messages={"invalid": BACK})


class ToleranceForm(forms.Form):
    """How far the numbers of a column may be apart."""

    output = forms.CharField(max_length=200)
    column = forms.CharField(max_length=200, error_messages={"required": "choose a column"})
    how = forms.CharField(max_length=20)
    value = forms.FloatField(
        required=False, error_messages={"invalid": "give a number, such as 0.01; empty is none"}
    )


class ReplayForm(Choices, Wish):
    """Start a replay."""

    savepoint = forms.IntegerField(error_messages={"required": "choose a savepoint"})
    version = forms.IntegerField(error_messages={"required": "choose a version"})
    discards = forms.BooleanField(required=False)


class PromoteForm(AbandonForm):
    """Cut over: with the results since the savepoint, or from an event time on."""

    how = forms.ChoiceField(choices=[("since", ""), ("at", "")], required=False)
    at = forms.DateTimeField(required=False, error_messages={"invalid": TIME})

    def clean(self) -> dict[str, Any]:
        """The time counts only where that was chosen; none then is the soonest."""
        asked = dict(super().clean() or {})
        asked["at"] = (asked.get("at") or "soon") if asked.get("how") == "at" else None
        return asked
