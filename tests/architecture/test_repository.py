"""Rules about the repository itself that no linter knows."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ADDRESS = re.compile(r"[a-z+]+://|resolved|index-url|find-links", re.IGNORECASE)


def tracked(*patterns: str) -> list[Path]:
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *patterns],
        cwd=ROOT,
        capture_output=True,
        check=True,
        text=True,
    ).stdout
    return [ROOT / name for name in listing.split("\0") if name and (ROOT / name).exists()]


def lock_files() -> list[Path]:
    return tracked("*.lock", "*package-lock.json")


def test_there_is_a_lock_file_for_each_package_manager():
    assert {path.name for path in lock_files()} == {"requirements.lock", "package-lock.json"}


@pytest.mark.parametrize("path", lock_files(), ids=lambda path: path.name)
def test_lock_files_carry_no_download_addresses(path):
    lines = [line for line in path.read_text().splitlines() if not line.lstrip().startswith("#")]
    # A package may say where its authors take donations: that is no address to download from.
    lines = [line for line in lines if '"url": ' not in line]
    assert [line for line in lines if ADDRESS.search(line)] == []


def test_every_python_package_is_pinned_by_hash():
    lines = (ROOT / "requirements.lock").read_text().splitlines()
    pins = [line for line in lines if re.match(r"[a-z0-9]", line)]
    assert len(pins) > 50
    assert [line for line in pins if "==" not in line or not line.endswith("\\")] == []


def test_platform_does_not_shadow_the_standard_library():
    code = "import platform; print(platform.python_version())"
    answer = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=True, text=True
    ).stdout
    assert answer.strip() == ".".join(map(str, sys.version_info[:3]))
    assert not (ROOT / "platform" / "__init__.py").exists()


def test_test_folders_are_not_packages():
    assert [path for path in tracked("tests") if path.name == "__init__.py"] == []


def test_nothing_is_left_for_later_without_a_place():
    marks = re.compile(r"\b(TODO|FIXME|XXX)\b")
    files = [path for path in tracked("*.py", "*.html", "*.js") if path != Path(__file__)]
    files = [path for path in files if "static/dashboard" not in str(path)]
    assert [str(path) for path in files if marks.search(path.read_text())] == []


def test_no_file_holds_the_marks_of_a_conflict():
    marks = re.compile(r"^(<<<<<<<|>>>>>>>) ", re.MULTILINE)
    files = tracked("*.py", "*.html", "*.js", "*.mjs", "*.css", "*.md", "*.toml")
    assert [str(path) for path in files if marks.search(path.read_text())] == []


def test_ci_runs_the_tests_and_nothing_else():
    commands = [
        line
        for line in (ROOT / ".ci" / "run").read_text().splitlines()
        if line and not line.startswith(("#", "set ", "cd "))
    ]
    assert commands == ["exec make test"]
