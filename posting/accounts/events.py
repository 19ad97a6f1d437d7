"""Events of accounts."""

from dataclasses import dataclass


@dataclass(frozen=True)
class AccountApplied:
    """An account was created, and waits for approval."""

    id: str


@dataclass(frozen=True)
class ApplicationDecided:
    """A pending account was approved, or will be deleted in the same transaction."""

    id: str
