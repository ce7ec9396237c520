"""Forms of the page of alerts."""

from __future__ import annotations

from django import forms

from controlplane.alerts.actions import MOST_SECONDS
from controlplane.alerts.models import AlertRule, Route

SECONDS = "it must be a whole number of seconds, at most a week"


class RuleForm(forms.Form):
    """A rule, to be kept or only played."""

    team = forms.CharField(max_length=64, error_messages={"required": "choose a team"})
    job = forms.CharField(max_length=64, required=False)
    measure = forms.ChoiceField(
        choices=AlertRule.Measure.choices,
        error_messages={
            "required": "choose what is looked at",
            "invalid_choice": "there is no measure %(value)s: choose one of the list",
        },
    )
    threshold = forms.FloatField(
        min_value=0,
        error_messages={
            "required": "give the value from which on it is too much",
            "invalid": "the limit must be a number, such as 60",
            "min_value": "the limit must not be negative",
        },
    )
    for_seconds = forms.IntegerField(
        min_value=0,
        max_value=MOST_SECONDS,
        required=False,
        error_messages={"invalid": SECONDS, "max_value": SECONDS, "min_value": SECONDS},
    )
    severity = forms.ChoiceField(choices=AlertRule.Severity.choices, initial="warn")


class MuteForm(forms.Form):
    """For how long, and why."""

    minutes = forms.IntegerField(
        min_value=1,
        max_value=43_200,
        error_messages={
            "required": "say for how many minutes",
            "invalid": "minutes must be a whole number",
            "max_value": "at most 30 days: 43200 minutes",
        },
    )
    reason = forms.CharField(max_length=300, error_messages={"required": "say why"})


class RouteForm(forms.Form):
    """Where a team is told."""

    team = forms.CharField(max_length=64, error_messages={"required": "choose a team"})
    kind = forms.ChoiceField(choices=Route.Kind.choices)
    target = forms.CharField(max_length=500, error_messages={"required": "say where to"})
