"""Write the dashboards into deploy/grafana, or say whether what is there is what they are.

python -m controlplane.metrics.grafana [--check]
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from controlplane.metrics.grafana.dashboards import DASHBOARDS

FOLDER = Path(__file__).parents[4] / "deploy" / "grafana" / "dashboards"


def files() -> dict[Path, str]:
    """What belongs where."""
    return {
        FOLDER / f"{one.uid.removeprefix('headwater-')}.json": json.dumps(
            one.json(), indent=2, ensure_ascii=False
        )
        + "\n"
        for one in DASHBOARDS
    }


def differing() -> list[Path]:
    """Files that are not as they should be, and those that should not be there."""
    wanted = files()
    found = {path: path.read_text() for path in FOLDER.glob("*.json")}
    return sorted(path for path in wanted | found if wanted.get(path) != found.get(path))


def main() -> int:
    """Write, or check; the exit code."""
    parser = argparse.ArgumentParser(prog="controlplane.metrics.grafana")
    parser.add_argument("--check", action="store_true", help="only say what differs")
    if parser.parse_args().check:
        for path in differing():
            print(f"{path.name} is not what the dashboards are; run `make grafana`")
        return 1 if differing() else 0
    FOLDER.mkdir(parents=True, exist_ok=True)
    for path in differing():
        path.unlink(missing_ok=True)
    for path, text in files().items():
        path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
