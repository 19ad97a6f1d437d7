"""Events of accounts."""

from dataclasses import dataclass


@dataclass(frozen=True)
class AccountApplied:
    """An account was created, and waits for approval."""

    id: str


@dataclass(frozen=True)
class AccountEdited:
    """A change of an account that others can see."""

    id: str


@dataclass(frozen=True)
class AccountDeleted:
    """An account was deleted that others could see."""

    id: str


@dataclass(frozen=True)
class ModeratorDemoted:
    """A moderator has become an ordinary member."""

    id: str


@dataclass(frozen=True)
class Removal:
    """A moderator will delete what a member has written, in the same transaction.

    `excerpt` is the beginning of the text, as plain text. The author gets a notification with the
    excerpt and the `reason`. For an image, `post_id` is the post that it is on.
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
