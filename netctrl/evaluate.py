"""`python -m netctrl.evaluate`: see `netctrl.cli.evaluate`."""

import sys

from netctrl.cli.evaluate import main

if __name__ == "__main__":
    sys.exit(main())
