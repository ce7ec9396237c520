"""Forms of the page of clusters."""

from __future__ import annotations

from django import forms

from dashboard.forms import Confirmed


class ClusterForm(forms.Form):
    """An engine to take in."""

    name = forms.CharField(max_length=64, error_messages={"required": "give the cluster a name"})
    url = forms.CharField(
        max_length=300, error_messages={"required": "give the address of its REST interface"}
    )
    token = forms.CharField(max_length=500, required=False)


class ChangeClusterForm(forms.Form):
    """Another address or token; an empty token leaves the one that is kept."""

    url = forms.CharField(
        max_length=300, error_messages={"required": "give the address of its REST interface"}
    )
    token = forms.CharField(max_length=500, required=False)
    forget_token = forms.BooleanField(required=False)


class ConfirmForm(Confirmed):
    """Something that cannot be taken back, confirmed by its name."""

    typed = forms.CharField(max_length=300, error_messages={"required": "type the name to confirm"})


class TaskManagerForm(forms.Form):
    """A task manager to end; typing its name is the confirmation."""

    manager = forms.CharField(
        max_length=300, error_messages={"required": "type the name of the task manager to stop"}
    )
