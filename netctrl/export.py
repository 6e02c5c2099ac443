"""`python -m netctrl.export`: see `netctrl.cli.export`."""

import sys

from netctrl.cli.export import main

if __name__ == "__main__":
    sys.exit(main())
