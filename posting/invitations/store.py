"""The SQL of invitations: lists, creation, and the use of one at sign-up."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa
from flask import current_app
from werkzeug.exceptions import Conflict

from posting.accounts.models import MEMBER, OWNER, User
from posting.accounts.recovery import is_secret, new_code, split_code
from posting.accounts.schemas import Author
from posting.accounts.store import lock_active_account
from posting.db.purge import purge_expired
from posting.db.transactions import Row, execute, fetch_all, fetch_one, fetch_value
from posting.db.types import new_id, now, truncate_to_milliseconds
from posting.invitations import schemas
from posting.invitations.models import (
    LIFETIME,
    MAX_LIFETIME,
    OPEN_PER_USER,
    Invitation,
    InvitationUse,
)
from posting.web.errors import Coded, InvalidInput, Message, NoSuch
from posting.web.pagination import Page, paginate
from posting.web.schemas import MAX_PAGE_SIZE, Item, columns, insert, pick, select, to_item

INVALID = Message(
    "invalid_invitation",
    "This invitation does not work. It may be incomplete, expired, used up or ended.",
)
NOT_IN_TIME = Message("out_of_range", "Must be in the future, within 90 days.")

_INVITATIONS = select(schemas.Invitation, Invitation)
_OF_USER = _INVITATIONS.where(Invitation.created_by_id == sa.bindparam("creator"))
_ONE = _INVITATIONS.where(Invitation.id == sa.bindparam("id"))
_USES = (
    sa.select(InvitationUse.invitation_id, *columns(Author, User))
    .join(User, User.id == InvitationUse.user_id)
    .where(InvitationUse.invitation_id.in_(sa.bindparam("ids", expanding=True)))
    .order_by(User.created_at, User.id)
)
_INSERT = insert(schemas.Invitation, Invitation)
_INVITATION = sa.select(Invitation.secret_hash, Invitation.created_by_id).where(
    Invitation.id == sa.bindparam("id")
)
# The links of first_run.py make an owner. They end when there is a moderator or an owner.
_is_not_late = sa.or_(Invitation.role == MEMBER, ~sa.exists().where(User.is_moderator))
_TAKE_USE = (
    sa.update(Invitation)
    .where(
        Invitation.id == sa.bindparam("invitation"),
        Invitation.uses_left > 0,
        Invitation.expires_at > sa.bindparam("time", type_=Invitation.expires_at.type),
        _is_not_late,
    )
    .values(uses_left=Invitation.uses_left - 1)
    .returning(Invitation.role)
)
_RECORD_USE = sa.insert(InvitationUse)


class NoSuchInvitation(NoSuch, thing="invitation"):
    pass


class TooManyInvitations(Coded, Conflict):
    error_code = "too_many_invitations"
    description = f"You have {OPEN_PER_USER} open invitations; end one of them first."


@dataclass(frozen=True)
class Use:
    """A use of an invitation: its id, who invites, and the role of the new account.

    `invited_by_id` is None for an invitation of an operator.
    """

    invitation_id: str
    invited_by_id: str | None
    role: str


def list_invitations(*, limit: int, cursor: str | None, creator_id: str | None = None) -> Page:
    """Return a page of all invitations, newest first, or of those that a user has created."""
    page = paginate(
        _OF_USER if creator_id else _INVITATIONS,
        limit=limit,
        cursor=cursor,
        name="invitations",
        newest_first=True,
        parameters={"creator": creator_id},
    )
    return Page(_add_users(page.items), page.next_cursor)


def list_all_invitations() -> Iterator[Item]:
    """Yield all invitations, newest first, which are read page by page."""
    cursor: str | None = None
    while True:
        page = list_invitations(limit=MAX_PAGE_SIZE, cursor=cursor)
        yield from page.items
        cursor = page.next_cursor
        if cursor is None:
            return


def get_invitation(id: str) -> Item:
    """Return an invitation. Raise NoSuchInvitation."""
    row = fetch_one(_ONE, id=id)
    if row is None:
        raise NoSuchInvitation
    return _add_users([to_item(row)])[0]


def _add_users(invitations: list[Item]) -> list[Item]:
    """Add to invitations who signed up by them."""
    users: dict[str, list[Item]] = {invitation["id"]: [] for invitation in invitations}
    for use in fetch_all(_USES, ids=list(users)):
        users[use.invitation_id].append(pick(Author, use))
    for invitation in invitations:
        invitation["used_by"] = users[invitation["id"]]
    return invitations


def find_inviter_of(user_id: str) -> str | None:
    """Return the name of the member who invited a user, if there is one."""
    inviter = sa.select(User.username).join(InvitationUse, InvitationUse.invited_by_id == User.id)
    name: str | None = fetch_value(inviter.where(InvitationUse.user_id == user_id))
    return name


def list_invited_by(user_id: str) -> list[str]:
    """Return the names of those whom a user has invited, oldest first."""
    invited = sa.select(User.username).join(InvitationUse, InvitationUse.user_id == User.id)
    invited = invited.where(InvitationUse.invited_by_id == user_id)
    return [row.username for row in fetch_all(invited.order_by(User.created_at, User.id))]


def create_invitation(
    created_by_id: str | None,
    *,
    uses: int = 1,
    note: str | None = None,
    expires_at: datetime | None = None,
    role: str = MEMBER,
) -> tuple[Item, str]:
    """Create an invitation of a locked account or an operator, and return it with its code.

    In the invitation, `created_by` is only the id. Raise 422 for a time that is not within 90 days,
    and 409 if the account has too many open invitations.
    """
    time = now()
    expires_at = expires_at or time + LIFETIME
    if not time < expires_at <= time + MAX_LIFETIME:
        raise InvalidInput.at("/expires_at", NOT_IN_TIME)
    if created_by_id and _count_open(created_by_id, time) >= OPEN_PER_USER:
        raise TooManyInvitations
    id = new_id()
    code, secret_hash = new_code(id)
    inserted = execute(
        _INSERT,
        id=id,
        created_by_id=created_by_id,
        secret_hash=secret_hash,
        note=note,
        role=role,
        uses=uses,
        uses_left=uses,
        created_at=time,
        expires_at=truncate_to_milliseconds(expires_at),
    )
    invitation = to_item(inserted.one()) | {"used_by": []}
    purge_expired(Invitation)
    return invitation, code


def _count_open(user_id: str, time: datetime) -> int:
    own = sa.select(sa.func.count()).where(
        Invitation.created_by_id == user_id, Invitation.uses_left > 0, Invitation.expires_at > time
    )
    count: int = fetch_value(own)
    return count


def lock_invitation(id: str) -> None:
    """Lock an invitation, if there is one, so that no one signs up with it meanwhile."""
    execute(sa.select(Invitation.id).where(Invitation.id == id).with_for_update())


def end_invitation(id: str) -> Row | None:
    """Delete an invitation, and return its creator's id as a row. Return None if there is none."""
    statement = sa.delete(Invitation).where(Invitation.id == id)
    return execute(statement.returning(Invitation.created_by_id)).one_or_none()


def take_use(code: str) -> Use:
    """Take a use of the invitation with this code within the transaction.

    Lock the account of its creator first, as all code locks accounts before other rows. Raise 422
    if the invitation is unknown, has expired, has no use left or was ended, or if its creator may
    not invite now.
    """
    id, secret = split_code(code)
    found = fetch_one(_INVITATION, id=id)
    if found is None or not is_secret(secret, found.secret_hash):
        raise InvalidInput.at("/invitation", INVALID)
    if found.created_by_id and not _may_invite(found.created_by_id):
        raise InvalidInput.at("/invitation", INVALID)
    taken = execute(_TAKE_USE, invitation=id, time=now()).one_or_none()
    if taken is None:
        raise InvalidInput.at("/invitation", INVALID)
    if taken.role == OWNER:
        # If two people use two links at the same time, Postgres ends one request as a deadlock.
        execute(sa.delete(Invitation).where(Invitation.role == OWNER, Invitation.id != id))
    return Use(id, found.created_by_id, taken.role)


def _may_invite(user_id: str) -> bool:
    """Lock the account of a user, and return whether it may invite."""
    if not lock_active_account(user_id):
        return False
    role: str = fetch_value(sa.select(User.role).where(User.id == user_id))
    return role != MEMBER or current_app.config["INVITATIONS"] == "members"


def record_use(use: Use, user_id: str) -> None:
    """Record which account has been created by a use, within the same transaction."""
    values = {"invitation_id": use.invitation_id, "invited_by_id": use.invited_by_id}
    execute(_RECORD_USE, user_id=user_id, **values)
