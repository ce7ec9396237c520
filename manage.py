#!/usr/bin/env python3
"""Django's entry; `manage.py up` starts the whole platform on one machine."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def main() -> None:
    """Run one management command."""
    sys.path.insert(1, str(Path(__file__).resolve().parent / "platform"))
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "controlplane.settings")
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
