"""The link by which the first owner signs up. Servers print it until there is a moderator."""

from datetime import timedelta

import sqlalchemy as sa
from flask import Flask

from posting.accounts.models import OWNER, User
from posting.db.engine import close_connections, is_in_memory
from posting.db.errors import error_reason
from posting.db.transactions import execute, fetch_all, unit_of_work
from posting.db.types import now, to_rfc3339
from posting.invitations.models import Invitation
from posting.invitations.store import create_invitation

LIFETIME = timedelta(days=1)
IS_FIRST_LINK = Invitation.role == OWNER  # no other invitation makes an owner
MAX_LINKS = 10  # that work at the same time; each start makes one
COMMAND = (
    "There is no owner yet. Run: flask users create NAME --owner, "
    "or for an account that exists: flask users promote NAME --owner"
)


def describe_first_run(app: Flask, server_url: str, *, with_link: bool) -> str | None:
    """Return what to print when the server starts. Return None if there is an owner.

    It is a new link to sign up. The links of the last starts work as well, since the operator may
    have sent one of them to somebody, and other processes may have printed theirs. It is a command
    instead if there is a moderator, in logs that others collect, while sign-up is closed, without
    pages, and if the server knows no URL.

    Call this before workers are forked, which must not share a connection.
    """
    base = app.config["PUBLIC_URL"] or server_url
    has_page = app.config["PAGES"] and app.config["SIGNUP"] != "closed"
    with app.app_context():
        try:
            roles = fetch_all(sa.select(User.role).where(User.is_moderator).distinct())
            if (OWNER,) in roles:
                return None
            if roles or not (with_link and has_page and base):
                return COMMAND
            expires_at = now() + LIFETIME
            with unit_of_work():
                _delete_former_links()
                _, code = create_invitation(None, role=OWNER, expires_at=expires_at)
        except sa.exc.SQLAlchemyError as error:
            return f"No link for the first owner can be created ({error_reason(error)})."
        finally:
            if not is_in_memory():
                close_connections()
    return (
        "There is no owner yet. To become the first owner, sign up with this link, or run for an "
        "account that exists: flask users promote NAME --owner. Keep the link secret. It works "
        f"once, until {to_rfc3339(expires_at)}:\n{base}/signup#{code}"
    )


def _delete_former_links() -> None:
    """Delete all links that have expired, and the oldest ones if there are too many."""
    links = sa.select(Invitation.id).where(IS_FIRST_LINK)
    newest = links.where(Invitation.expires_at > now()).order_by(Invitation.created_at.desc())
    newest = newest.limit(MAX_LINKS - 1)
    is_former = Invitation.id.not_in(newest.scalar_subquery())
    execute(sa.delete(Invitation).where(IS_FIRST_LINK, is_former))
