"""What several tests need."""

from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
