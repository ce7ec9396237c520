"""`python -m engine.cli`, the same as `headwater`."""

import sys

from engine.cli.program import main

if __name__ == "__main__":
    sys.exit(main())
