"""Folders of this checkout."""

from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
ROOT = TESTS.parent
EXPERIMENTS = ROOT / "experiments"
STORED = TESTS / "data" / "ns3"
"""What is rendered for ns-3, stored."""
