"""The findings of checks: a level, a message and what to do about it."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

RESTORE = "Check which process has it open. If it is damaged, run: flask restore --force FILE"
SET_CLOCK = "Synchronize the clock, for example with: timedatectl set-ntp true"
MAX_SKEW = timedelta(seconds=2)


class Level(StrEnum):
    """The severity of a finding."""

    OK = "ok"
    WARNING = "warning"
    FAILURE = "failure"


@dataclass(frozen=True)
class Finding:
    """The result of a check; all but OK have a fix."""

    level: Level
    message: str
    fix: str = ""


Findings = Iterator[Finding]


def ok(message: str) -> Finding:
    return Finding(Level.OK, message)


def warning(message: str, fix: str) -> Finding:
    return Finding(Level.WARNING, message, fix)


def failure(message: str, fix: str) -> Finding:
    return Finding(Level.FAILURE, message, fix)
