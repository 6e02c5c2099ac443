"""`python -m netctrl.design`: see `netctrl.cli.design`."""

import sys

from netctrl.cli.design import main

if __name__ == "__main__":
    sys.exit(main())
