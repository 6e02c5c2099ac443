"""`python -m netctrl.identify`: see `netctrl.cli.identify`."""

import sys

from netctrl.cli.identify import main

if __name__ == "__main__":
    sys.exit(main())
