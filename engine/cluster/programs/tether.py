"""A command that does not outlive the process that starts it, whatever command it is.

    python -I tether.py PARENT COMMAND …        becomes COMMAND, and is killed when PARENT dies

Needs    Linux; elsewhere the command runs untied. Nothing of the engine is imported: it becomes
         something else at once, in whatever folder and environment that wants.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main() -> None:
    """Tie this process to its parent, and become the command."""
    parent, command = int(sys.argv[1]), sys.argv[2:]
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died before it could be followed
        sys.exit(1)
    try:
        os.execvp(command[0], command)  # noqa: S606  no shell, and the command is our caller's
    except OSError as error:
        sys.exit(f"{command[0]} cannot be run: {error.strerror}")


if __name__ == "__main__":
    main()
