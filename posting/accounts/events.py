"""Events of accounts."""

from dataclasses import dataclass


@dataclass(frozen=True)
class AccountApplied:
    """An account was created, and waits for approval."""

    id: str


@dataclass(frozen=True)
class ModeratorDemoted:
    """A moderator has become an ordinary member."""

    id: str


@dataclass(frozen=True)
class Removal:
    """A moderator will delete what a member has written, in the same transaction.

    `excerpt` is the beginning of it as plain text, and `reason` what its author is told. `post_id`
    is that of the post on which an image was.
    """

    kind: str
    id: str
    author_id: str | None
    excerpt: str | None
    reason: str | None
    post_id: str | None = None


@dataclass(frozen=True)
class ApplicationDecided:
    """A pending account was approved, or will be deleted in the same transaction."""

    id: str
