"""Forms of the pages about people, teams, tokens and the audit log."""

from __future__ import annotations

from django import forms

from controlplane.access.models import ApiToken, Role
from controlplane.access.tokens import MAX_DAYS
from dashboard.forms import Confirmed


class NameForm(forms.Form):
    """The name of a new team or person."""

    name = forms.CharField(max_length=150, error_messages={"required": "give a name"})


class MemberForm(forms.Form):
    """Who is to have which role."""

    user = forms.CharField(max_length=150, error_messages={"required": "say whom"})
    role = forms.ChoiceField(
        choices=Role.choices,
        error_messages={
            "required": "choose a role",
            "invalid_choice": "role must be viewer, operator or admin: got %(value)s",
        },
    )


class PersonForm(forms.Form):
    """What is to become of a person."""

    to = forms.ChoiceField(
        choices=[(word, word) for word in ("disable", "enable", "admin", "no_admin")],
        error_messages={
            "required": "say what is to be done",
            "invalid_choice": "this can be disable, enable, admin or no_admin: got %(value)s",
        },
    )


class TypedForm(Confirmed):
    """A name typed to confirm."""

    typed = forms.CharField(max_length=200, error_messages={"required": "type the name to confirm"})


class TokenForm(forms.Form):
    """A new API token."""

    name = forms.CharField(max_length=64, error_messages={"required": "say what it is for"})
    scope = forms.ChoiceField(
        choices=ApiToken.Scope.choices,
        error_messages={
            "required": "choose a scope",
            "invalid_choice": "scope must be read, operate or admin: got %(value)s",
        },
    )
    team = forms.CharField(max_length=64, required=False)
    days = forms.IntegerField(
        error_messages={
            "required": f"say how many days it lasts, 1 to {MAX_DAYS}",
            "invalid": "days must be a whole number, such as 90",
        }
    )


class AuditForm(forms.Form):
    """What is looked for in the audit log."""

    job = forms.CharField(max_length=64, required=False)
    actor = forms.CharField(max_length=150, required=False)
    action = forms.CharField(max_length=64, required=False)
    text = forms.CharField(max_length=200, required=False)
    since = forms.DateTimeField(required=False)
    until = forms.DateTimeField(required=False)
    before = forms.IntegerField(min_value=1, required=False)
