"""`python -m netctrl.sweep`: see `netctrl.cli.sweep`."""

import sys

from netctrl.cli.sweep import main

if __name__ == "__main__":
    sys.exit(main())
