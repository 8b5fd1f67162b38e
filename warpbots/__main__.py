"""Runs the command line: ``python -m warpbots``."""

import sys

from warpbots.cli import main

if __name__ == "__main__":
    sys.exit(main())
