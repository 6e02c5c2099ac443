"""`python -m netctrl.list`: see `netctrl.cli.list`."""

import sys

from netctrl.cli.list import main

if __name__ == "__main__":
    sys.exit(main())
