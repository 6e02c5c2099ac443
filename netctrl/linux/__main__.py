"""`python -m netctrl.linux`: see `netctrl.cli.linux.verb`."""

import sys

from netctrl.cli.linux.verb import main

if __name__ == "__main__":
    sys.exit(main())
