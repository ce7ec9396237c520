"""Forms of a job's configuration: what a person may choose, as the settings want it."""

from __future__ import annotations

from typing import Any

from django import forms

from controlplane.jobs.settings import split_arguments
from dashboard.forms import Wish

NUMBERS = (
    "parallelism",
    "control_port",
    "checkpoint_interval_ms",
    "checkpoint_timeout_ms",
    "checkpoint_min_pause_ms",
    "restart_attempts",
    "restart_delay_ms",
    "delay_objective_s",
    "recovery_point_objective_s",
)
OPEN = ("checkpoint_timeout_ms", "checkpoint_min_pause_ms", "restart_attempts", "restart_delay_ms")
"""Left empty, the job file decides."""


class SettingsForm(forms.Form):
    """Every setting of a job; what is not sent stays as it is."""

    arguments = forms.CharField(max_length=4000, required=False)
    tags = forms.CharField(max_length=1000, required=False)
    incremental = forms.ChoiceField(choices=[("", ""), ("yes", ""), ("no", "")], required=False)
    state_backend = forms.CharField(max_length=20, required=False)
    restart_strategy = forms.CharField(max_length=30, required=False)
    require_state = forms.BooleanField(required=False)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in NUMBERS:
            wrong = f"{name.replace('_', ' ')} must be a whole number, such as 1000"
            self.fields[name] = forms.IntegerField(
                required=False, error_messages={"invalid": wrong}
            )

    def settings(self) -> dict[str, Any]:
        """What was sent, in the form that the job keeps."""
        sent, clean = self.data, self.cleaned_data
        found: dict[str, Any] = {
            name: clean[name]
            for name in NUMBERS
            if name in sent and (clean[name] is not None or name in OPEN)
        }
        for name in ("state_backend", "restart_strategy"):
            if name in sent:
                found[name] = clean[name] or None
        if "incremental" in sent:
            found["incremental"] = {"yes": True, "no": False}.get(clean["incremental"])
        if "arguments" in sent:
            found["arguments"] = split_arguments(clean["arguments"])
        if "tags" in sent:
            found["tags"] = clean["tags"].replace(",", " ").split()
            found["require_state"] = clean["require_state"]  # a box that is not ticked is not sent
        return found


class RescaleForm(Wish):
    """Another parallelism for a running job."""

    parallelism = forms.IntegerField(
        error_messages={
            "required": "give a parallelism",
            "invalid": "parallelism must be a whole number, such as 4",
        }
    )


class ReasonForm(Wish):
    """Something that a person does for a reason."""

    reason = forms.CharField(max_length=500, required=False)


class UpkeepForm(ReasonForm):
    """What the platform shall do when the run ends."""

    wish = forms.ChoiceField(
        choices=[("pause", ""), ("resume", ""), ("give_up", "")],
        error_messages={"invalid_choice": "wish must be pause, resume or give_up"},
    )


class MoveForm(ReasonForm):
    """Another cluster for a job."""

    cluster = forms.CharField(max_length=64, error_messages={"required": "choose a cluster"})


class TeamForm(ReasonForm):
    """Another team for a job."""

    team = forms.CharField(max_length=64, error_messages={"required": "choose a team"})


class DiffForm(forms.Form):
    """Two versions to compare."""

    old = forms.IntegerField(min_value=1, error_messages={"required": "choose an older version"})
    new = forms.IntegerField(min_value=1, error_messages={"required": "choose a newer version"})
