"""Forms of savepoints, their schedules and rules; see `forms.py`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from django import forms

from controlplane.snapshots.inspection import key_of
from controlplane.snapshots.models import SavepointSchedule
from controlplane.snapshots.policy_actions import PolicyWish
from controlplane.snapshots.schedule_options import MAX_JITTER_S, MAX_MINUTES, ScheduleOptions
from dashboard.forms import Confirmed, Wish


class SavepointForm(Wish):
    """Take a savepoint now."""

    label = forms.CharField(max_length=200, required=False)


class ImportForm(Wish):
    """Take a savepoint folder into the catalogue."""

    path = forms.CharField(
        max_length=500, error_messages={"required": "give the path of the savepoint's folder"}
    )
    label = forms.CharField(max_length=200, required=False)


class LabelForm(forms.Form):
    """Name a savepoint."""

    label = forms.CharField(max_length=200, required=False)


class PinForm(forms.Form):
    """Keep a savepoint, or leave it to the rules."""

    pinned = forms.ChoiceField(choices=[("1", ""), ("0", "")])


class ExpiryForm(forms.Form):
    """Until when a savepoint is kept: a day, in UTC; empty is for the rules to decide."""

    expires = forms.DateField(
        required=False, error_messages={"invalid": "expiry must be a day, such as 2026-12-31"}
    )

    def moment(self) -> datetime | None:
        """The end of that day."""
        day = self.cleaned_data["expires"]
        return None if day is None else datetime(day.year, day.month, day.day, 23, 59, tzinfo=UTC)


class DeleteForm(Confirmed):
    """Delete a savepoint, or only its record."""

    how = forms.ChoiceField(choices=[("mark", ""), ("now", ""), ("detach", "")])
    typed = forms.CharField(
        max_length=20, error_messages={"required": "type the savepoint's number to confirm"}
    )
    reason = forms.CharField(max_length=200, required=False)


class ScheduleForm(forms.Form):
    """Take savepoints regularly."""

    every_minutes = forms.FloatField(
        required=False,
        min_value=0.1,
        max_value=MAX_MINUTES,
        error_messages={
            "invalid": "minutes must be a number, such as 30 or 0.5",
            "min_value": "a savepoint can be taken every 0.1 minutes at most; give a larger number",
        },
    )
    cron = forms.CharField(max_length=100, required=False)
    zone = forms.CharField(max_length=64, required=False)
    jitter_s = forms.IntegerField(required=False, min_value=0, max_value=MAX_JITTER_S)
    blackouts = forms.CharField(max_length=1_000, required=False)
    late = forms.ChoiceField(choices=SavepointSchedule.Late.choices, required=False)
    skip_unhealthy = forms.BooleanField(required=False)
    skip_unchanged = forms.BooleanField(required=False)

    def options(self) -> ScheduleOptions:
        """What is asked for, besides the interval."""
        asked = self.cleaned_data
        return ScheduleOptions(
            cron=asked["cron"],
            zone=asked["zone"] or "UTC",
            jitter_s=asked["jitter_s"] or 0,
            blackouts=asked["blackouts"],
            late=SavepointSchedule.Late(asked["late"] or SavepointSchedule.Late.ONCE),
            skip_unhealthy=asked["skip_unhealthy"],
            skip_unchanged=asked["skip_unchanged"],
        )


class PolicyForm(forms.Form):
    """Which savepoints are kept; an empty rule is none."""

    keep_last = forms.IntegerField(required=False, min_value=1)
    keep_days = forms.IntegerField(required=False, min_value=1)
    daily = forms.IntegerField(required=False, min_value=1)
    weekly = forms.IntegerField(required=False, min_value=1)
    monthly = forms.IntegerField(required=False, min_value=1)
    zone = forms.CharField(max_length=64, required=False)
    by_hand = forms.BooleanField(required=False)
    grace_hours = forms.FloatField(required=False, min_value=0)
    verify_days = forms.FloatField(required=False, min_value=0.01)

    def wish(self) -> PolicyWish:
        """What is asked for."""
        asked: dict[str, Any] = dict(self.cleaned_data)
        grace = asked.pop("grace_hours")
        asked["zone"] = asked["zone"] or "UTC"
        return PolicyWish(**asked, grace_hours=24.0 if grace is None else grace)


class FilterForm(forms.Form):
    """What to look for in the catalogue."""

    q = forms.CharField(max_length=100, required=False)
    origin = forms.CharField(max_length=16, required=False)
    health = forms.CharField(max_length=16, required=False)


class RowsForm(forms.Form):
    """Which rows of a state to read: `carrier=UA, day=3`."""

    operator = forms.CharField(max_length=200, error_messages={"required": "choose a state"})
    state = forms.CharField(max_length=200, error_messages={"required": "choose a state"})
    key = forms.CharField(max_length=500, required=False)

    def clean_key(self) -> dict[str, str]:
        """Columns of the key with their values."""
        return key_of(str(self.cleaned_data["key"]))
