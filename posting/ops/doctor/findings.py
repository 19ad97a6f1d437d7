"""The findings of checks: a level, a message and what to do about it."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Literal

SET_CLOCK = "Synchronize the clock, for example with: timedatectl set-ntp true"
MAX_SKEW = timedelta(seconds=2)


@dataclass(frozen=True)
class Finding:
    """The result of a check; all but "ok" have a fix."""

    level: Literal["ok", "warning", "failure"]
    message: str
    fix: str = ""


Findings = Iterator[Finding]
ok = partial(Finding, "ok")
warning = partial(Finding, "warning")
failure = partial(Finding, "failure")
