"""`python -m controlplane.client`, the same as `headwater`."""

import sys

from controlplane.client.program import main

if __name__ == "__main__":
    sys.exit(main())
