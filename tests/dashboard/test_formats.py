"""Server and browser print the same strings; `format.json` is what the browser's code printed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dashboard import cells, fmt
from dashboard.templatetags.hw import sentence

FIXTURE = json.loads(Path(__file__).with_name("format.json").read_text("utf-8"))


@pytest.mark.parametrize("case", FIXTURE["numbers"], ids=lambda c: f"{c['kind']}-{c['value']}")
def test_a_number_reads_the_same_on_both_sides(case):
    assert fmt.text(case["kind"], case["value"]) == case["text"]
    assert str(cells.cell(case["kind"], case["value"])) == case["html"]


@pytest.mark.parametrize("case", FIXTURE["stamps"], ids=lambda c: c["text"])
def test_a_point_in_time_reads_the_same_on_both_sides(case):
    assert fmt.stamp(case["ms"], case["now_ms"]) == case["text"]


@pytest.mark.parametrize("case", FIXTURE["ages"], ids=lambda c: c["text"])
def test_an_age_reads_the_same_on_both_sides(case):
    assert fmt.ago(case["ms"], case["now_ms"]) == case["text"]


@pytest.mark.parametrize("case", FIXTURE["etas"], ids=lambda c: c["text"])
def test_an_estimate_reads_the_same_on_both_sides(case):
    assert fmt.eta(case["low"], case["high"]) == case["text"]


@pytest.mark.parametrize("case", FIXTURE["cells"], ids=lambda c: f"{c['format']}-{c['value']}")
def test_a_cell_has_the_same_markup_on_both_sides(case):
    assert unescaped(cells.cell(case["format"], case["value"])) == unescaped(case["html"])


@pytest.mark.parametrize("case", FIXTURE["sentences"], ids=lambda c: c["raw"])
def test_an_error_becomes_the_same_sentence_on_both_sides(case):
    assert sentence(case["raw"]) == case["text"]


def unescaped(html):
    """Both sides escape quotes, each in its own spelling."""
    return str(html).replace("&#x27;", "&#39;")


def test_what_is_not_known_is_a_dash_and_never_zero():
    assert [fmt.text(kind, None) for kind in fmt.FORMATS] == ["–"] * len(fmt.FORMATS)


def test_what_is_no_number_is_a_dash():
    assert fmt.text("rate", float("nan")) == "–"
