"""Links to Grafana: the right dashboard, job and time, or none at all."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.template import Context, Template

TEMPLATES = Path(__file__).parents[2] / "templates"
LINKS = sorted(
    {
        found
        for path in TEMPLATES.rglob("*.html")
        for found in re.findall(r"{% grafana .*?%}", path.read_text())
    }
)


def rendered(text, **values):
    return Template("{% load grafana %}" + text).render(Context(values))


def test_a_link_names_the_job_and_the_minutes_of_the_page(monkeypatch):
    monkeypatch.setenv("HEADWATER_GRAFANA_URL", "https://grafana.example")
    text = rendered('{% grafana "job" job minutes %}', job='<b>"x"</b>', minutes=360)
    wanted = "var-job=%3Cb%3E%22x%22%3C%2Fb%3E&amp;from=now-360m&amp;to=now"
    assert f'href="https://grafana.example/d/headwater-job?{wanted}"' in text


def test_a_link_may_lead_to_one_panel(monkeypatch):
    monkeypatch.setenv("HEADWATER_GRAFANA_URL", "https://grafana.example")
    assert "viewPanel=1" in rendered('{% grafana "checkpoints" "a" panel="Duration" %}')


def test_without_a_grafana_there_is_none(monkeypatch):
    monkeypatch.delenv("HEADWATER_GRAFANA_URL", raising=False)
    assert rendered('{% grafana "fleet" %}') == ""


@pytest.mark.parametrize("tag", LINKS)
def test_every_link_of_a_page_leads_somewhere(monkeypatch, tag):
    """A dashboard or a panel that is not there is an error here, not an empty page there."""
    monkeypatch.setenv("HEADWATER_GRAFANA_URL", "https://grafana.example")
    text = rendered(tag, job={"name": "flights"}, page={"minutes": "60"})
    found = re.search(r'href="https://grafana.example/d/headwater-[a-z-]+\?(\S+)"', text)
    assert found is not None
    assert re.search(r"from=now-\d+m&amp;to=now", found[1])
    assert ("viewPanel=" in found[1]) == ("panel=" in tag)
    assert ("var-job=flights" in found[1]) == ("job.name" in tag)
