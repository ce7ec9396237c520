"""The colours: text is readable on what it stands on, and states differ to every eye.

Source   contrast: WCAG 2.2; colour vision: Machado, Oliveira and Fernandes 2009, severity 1;
         difference: CIEDE2000, Sharma, Wu and Dalal 2005.
"""

from __future__ import annotations

import math
import re
from itertools import combinations
from pathlib import Path

import pytest

TOKENS = Path(__file__).parents[2] / "dashboard/frontend/src/css/tokens.css"
STATES = ("ok", "busy", "warn", "crit", "idle", "save")
TEXT, GRAPHIC = 4.5, 3.0
LEAST_APART, DEAREST_APART = 8.0, 15.0
"""Of any two states, and of warn and crit: to take one for the other costs most."""
EYES = {
    "deutan": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413),
               (-0.011820, 0.042940, 0.968881)),
    "protan": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216),
               (-0.003882, -0.048116, 1.051998)),
    "tritan": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602),
               (0.004733, 0.691367, 0.303900)),
}  # fmt: skip
WHITE = (0.95047, 1.0, 1.08883)
TO_XYZ = (
    (0.4124564, 0.3575761, 0.1804375),
    (0.2126729, 0.7151522, 0.0721750),
    (0.0193339, 0.1191920, 0.9503041),
)

Colour = tuple[float, float, float]


def tokens() -> list[dict[str, str]]:
    """The colours by name, in light and in dark."""
    pairs = re.findall(r"--([\w-]+):\s*light-dark\((#\w{6}), (#\w{6})\)", TOKENS.read_text("utf-8"))
    return [{name: pair[side] for name, *pair in pairs} for side in (0, 1)]


LIGHT, DARK = tokens()
themes = pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])


def linear(code: str) -> Colour:
    """Linear red, green and blue, each from 0 to 1."""
    parts = [int(code[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return red, green, blue


def through(matrix: tuple[Colour, ...], colour: Colour) -> Colour:
    x, y, z = (sum(a * b for a, b in zip(row, colour, strict=True)) for row in matrix)
    return x, y, z


def contrast(one: str, other: str) -> float:
    low, high = sorted(through(TO_XYZ, linear(code))[1] for code in (one, other))
    return (high + 0.05) / (low + 0.05)


def seen(code: str, eye: str) -> Colour:
    """The colour as that eye sees it, in CIELAB."""
    shown = through(EYES[eye], linear(code)) if eye in EYES else linear(code)
    xyz = through(TO_XYZ, tuple(min(1.0, max(0.0, part)) for part in shown))
    x, y, z = (
        t ** (1 / 3) if t > 216 / 24389 else (24389 / 27 * t + 16) / 116
        for t in (part / white for part, white in zip(xyz, WHITE, strict=True))
    )
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def apart(one: Colour, other: Colour) -> float:
    """CIEDE2000, with all weights 1."""
    (light1, a1, b1), (light2, a2, b2) = one, other
    mean = (math.hypot(a1, b1) + math.hypot(a2, b2)) / 2
    stretch = 1 + 0.5 * (1 - math.sqrt(mean**7 / (mean**7 + 25**7)))
    chroma1, chroma2 = math.hypot(stretch * a1, b1), math.hypot(stretch * a2, b2)
    hue1 = math.degrees(math.atan2(b1, stretch * a1)) % 360
    hue2 = math.degrees(math.atan2(b2, stretch * a2)) % 360
    turn = (hue2 - hue1 + 180) % 360 - 180 if chroma1 * chroma2 else 0.0
    hue = 2 * math.sqrt(chroma1 * chroma2) * math.sin(math.radians(turn / 2))
    light_mean, chroma_mean = (light1 + light2) / 2, (chroma1 + chroma2) / 2
    hue_mean = (hue1 + turn / 2 if chroma1 * chroma2 else hue1 + hue2) % 360
    waves = ((0.17, 1, -30), (-0.24, 2, 0), (-0.32, 3, 6), (0.20, 4, -63))
    tone = 1 - sum(w * math.cos(math.radians(n * hue_mean + shift)) for w, n, shift in waves)
    bright = (light_mean - 50) ** 2
    in_light = (light2 - light1) / (1 + 0.015 * bright / math.sqrt(20 + bright))
    in_chroma = (chroma2 - chroma1) / (1 + 0.045 * chroma_mean)
    in_hue = hue / (1 + 0.015 * chroma_mean * tone)
    turned = math.sin(math.radians(60 * math.exp(-(((hue_mean - 275) / 25) ** 2))))
    blue = -2 * math.sqrt(chroma_mean**7 / (chroma_mean**7 + 25**7)) * turned
    return math.sqrt(in_light**2 + in_chroma**2 + in_hue**2 + blue * in_chroma * in_hue)


@pytest.mark.parametrize(
    ("one", "other", "difference"),
    [
        ((50, 2.6772, -79.7751), (50, 0, -82.7485), 2.0425),
        ((50, 2.5, 0), (73, 25, -18), 27.1492),
        ((2.0776, 0.0795, -1.1350), (0.9033, -0.0636, -0.5514), 0.9082),
    ],
)
def test_the_difference_is_the_published_one(one, other, difference):
    assert apart(one, other) == pytest.approx(difference, abs=1e-4)


@themes
def test_text_is_readable_on_what_it_stands_on(theme):
    grounds = {"panel", "canvas"}
    pairs = [(ink, ground) for ink in ("ink", "ink-2", "ink-3") for ground in grounds]
    pairs += [(f"{state}-t", ground) for state in STATES for ground in ("panel", f"{state}-b")]
    pairs.append(("ink-inv", "act"))
    weak = {pair: contrast(*(theme[name] for name in pair)) for pair in pairs}
    assert {pair: ratio for pair, ratio in weak.items() if ratio < TEXT} == {}


@themes
def test_glyphs_and_the_outlines_of_fields_are_seen(theme):
    pairs = [(f"{state}-f", "panel") for state in STATES]
    pairs += [("line-ctl", "panel"), ("line-ctl", "canvas"), ("focus", "panel")]
    weak = {pair: contrast(*(theme[name] for name in pair)) for pair in pairs}
    assert {pair: ratio for pair, ratio in weak.items() if ratio < GRAPHIC} == {}


@themes
@pytest.mark.parametrize("eye", ["every colour", *EYES])
def test_states_differ_to_every_eye(eye, theme):
    fills = {state: seen(theme[f"{state}-f"], eye) for state in STATES}
    between = {pair: apart(*(fills[one] for one in pair)) for pair in combinations(STATES, 2)}
    assert min(between.values()) > LEAST_APART
    assert between["warn", "crit"] > DEAREST_APART
