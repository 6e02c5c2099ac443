"""`python -m netctrl.simulate`: see `netctrl.cli.simulate`."""

import sys

from netctrl.cli.simulate import main

if __name__ == "__main__":
    sys.exit(main())
