"""Folders of this checkout."""

import os
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
ROOT = TESTS.parent
SITE = Path(os.environ.get("NETCTRL_SITE", ROOT / "site"))
"""The built site."""
EXPERIMENTS = ROOT / "experiments"
STORED = TESTS / "data" / "ns3"
"""What is rendered for ns-3, stored."""
