"""Helpers for several tests."""

from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
