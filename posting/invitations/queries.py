"""The statements that read invitations."""

from collections.abc import Iterator

import sqlalchemy as sa

from posting.accounts.models import User
from posting.accounts.schemas import Author
from posting.db.transactions import fetch_all, fetch_one, fetch_value
from posting.invitations import schemas
from posting.invitations.models import Invitation, InvitationUse
from posting.web.pagination import paginate
from posting.web.problems import NoSuch
from posting.web.rows import Item, columns, pick, select, to_item
from posting.web.schemas import MAX_PAGE_SIZE


class NoSuchInvitation(NoSuch, thing="invitation"):
    pass


LIST = "invitations"  # the name in cursors
INVITATIONS = select(schemas.Invitation, Invitation)
INVITATIONS_OF_USER = INVITATIONS.where(Invitation.created_by_id == sa.bindparam("creator"))
_INVITATION = INVITATIONS.where(Invitation.id == sa.bindparam("id"))
_USES = (
    sa.select(InvitationUse.invitation_id, *columns(Author, User))
    .join(User, User.id == InvitationUse.user_id)
    .where(InvitationUse.invitation_id.in_(sa.bindparam("ids", expanding=True)))
    .order_by(User.created_at, User.id)
)


def get_invitation(id: str) -> Item:
    """Return an invitation. Raise NoSuchInvitation."""
    row = fetch_one(_INVITATION, id=id)
    if row is None:
        raise NoSuchInvitation
    return add_users([to_item(row)])[0]


def add_users(invitations: list[Item]) -> list[Item]:
    """Add to invitations who signed up by them."""
    users: dict[str, list[Item]] = {invitation["id"]: [] for invitation in invitations}
    for use in fetch_all(_USES, ids=list(users)):
        users[use.invitation_id].append(pick(Author, use))
    for invitation in invitations:
        invitation["used_by"] = users[invitation["id"]]
    return invitations


def list_invitations() -> Iterator[Item]:
    """Yield all invitations with who signed up by them, newest first, read page by page."""
    cursor: str | None = None
    while True:
        page = paginate(
            INVITATIONS, limit=MAX_PAGE_SIZE, cursor=cursor, name=LIST, newest_first=True
        )
        yield from add_users(page.items)
        cursor = page.next_cursor
        if cursor is None:
            return


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
