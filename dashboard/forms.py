"""Forms: what a person may send, checked before an action sees it.

Errors   the first sentence of each field; the actions check again what only they can know.
"""

from __future__ import annotations

from typing import Any

from django import forms
from django.http import QueryDict

from controlplane.access.errors import Refused
from controlplane.replay.limits import Limit, limit_of

MOST_AGREED = 200
FILE_WANTED = "choose a job file that ends in .py, .zip, .whl or .jar"


def agreed(given: QueryDict, name: str) -> list[str]:
    """What may be lost, as far as names of operators and states go."""
    return sorted({key[:500].replace("\0", "") for key in given.getlist(name)[:MOST_AGREED]})


class Wish(forms.Form):
    """Anything that starts an operation: sent twice, it is the same wish."""

    idempotency_key = forms.CharField(max_length=100, required=False)


class Confirmed(forms.Form):
    """What cannot be taken back: its field `typed` must be the name, exactly."""

    def __init__(self, *args: object, name: str, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        self._name = name

    def clean_typed(self) -> str:
        """Only the exact name confirms."""
        typed = str(self.cleaned_data["typed"])
        if typed != self._name:
            msg = f"type {self._name} to confirm: got {typed}"
            raise forms.ValidationError(msg)
        return typed


class DeployForm(Wish):
    """A new job."""

    name = forms.CharField(max_length=64, error_messages={"required": "give the job a name"})
    team = forms.CharField(max_length=64, error_messages={"required": "choose a team"})
    cluster = forms.CharField(max_length=64, required=False)
    file = forms.FileField(error_messages={"required": FILE_WANTED})
    arguments = forms.CharField(max_length=4000, required=False)
    parallelism = forms.IntegerField(min_value=1, max_value=128, initial=1)


class VersionForm(forms.Form):
    """A new version of a job."""

    file = forms.FileField(error_messages={"required": FILE_WANTED})
    note = forms.CharField(max_length=500, required=False)


class CheckForm(forms.Form):
    """What a job would be started with."""

    version = forms.IntegerField(min_value=1)
    savepoint = forms.IntegerField(min_value=1, required=False)
    mode = forms.CharField(max_length=20, required=False)


class StartForm(CheckForm, Wish):
    """Start a stopped job, or upgrade a running one."""

    consent = forms.BooleanField(required=False)
    reason = forms.CharField(max_length=500, required=False)


class StopForm(Confirmed, Wish):
    """End a job: the safe way, or at once."""

    how = forms.ChoiceField(choices=[("stop", ""), ("drain", ""), ("cancel", "")])
    typed = forms.CharField(
        max_length=64, error_messages={"required": "type the job's name to confirm"}
    )


class AbandonForm(Confirmed, Wish):
    """End a replay."""

    typed = forms.CharField(
        max_length=64, error_messages={"required": "type the replay's name to confirm"}
    )


class LimitField(forms.Field):
    """How fast a replay may read: 5000, 60x, or empty."""

    def __init__(self) -> None:
        super().__init__(required=False)

    def to_python(self, value: Any) -> Limit:
        """Read it."""
        try:
            limit = limit_of(value or "")
            limit.check()
        except ValueError:
            msg = "the read limit must be rows per second, 5000, or times real time, 60x"
            raise forms.ValidationError(msg) from None
        except Refused as refused:
            raise forms.ValidationError(refused.message) from None
        return limit


class LimitForm(forms.Form):
    """How fast a replay may read."""

    rows_per_second = LimitField()


class PauseForm(forms.Form):
    """Let a replay read nothing, or go on."""

    paused = forms.BooleanField(required=False)


class AcceptForm(forms.Form):
    """Say that the new version intends some differences."""

    difference = forms.IntegerField()


class ControlForm(forms.Form):
    """One line of a job's control stream."""

    key = forms.CharField(max_length=64, error_messages={"required": "say which sensor"})
    value = forms.FloatField(
        error_messages={
            "required": "give a factor",
            "invalid": "the factor must be a number, such as 2.5",
        }
    )
