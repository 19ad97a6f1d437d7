"""What checks find: how bad it is, what was seen, and the cure."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

RESTORE = "See who holds it open; if it is damaged: flask restore --force FILE"
SET_CLOCK = "Let the system keep time, such as by: timedatectl set-ntp true"
CLOCK_OFF = timedelta(seconds=2)


class Level(StrEnum):
    """How bad it is."""

    OK = "ok"
    WARNING = "warning"
    FAILURE = "failure"


@dataclass(frozen=True)
class Finding:
    """What a check has seen, and what to do if that is not good."""

    level: Level
    what: str
    cure: str = ""


Findings = Iterator[Finding]


def ok(what: str) -> Finding:
    return Finding(Level.OK, what)


def warning(what: str, cure: str) -> Finding:
    return Finding(Level.WARNING, what, cure)


def failure(what: str, cure: str) -> Finding:
    return Finding(Level.FAILURE, what, cure)
