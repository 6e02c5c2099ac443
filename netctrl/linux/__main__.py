"""`python -m netctrl.linux`: see `netctrl.cli.linux`."""

import sys

from netctrl.cli.linux import main

if __name__ == "__main__":
    sys.exit(main())
