"""The first run: how the first account is created, which is that of a moderator."""

from datetime import timedelta

import sqlalchemy as sa
from flask import Flask

from posting.accounts.models import MODERATOR, User
from posting.db.engine import close_connections
from posting.db.errors import error_reason
from posting.db.transactions import commit, execute, fetch_one, rollback
from posting.db.types import now, to_rfc3339
from posting.invitations.models import Invitation
from posting.invitations.store import create_invitation

LIFETIME = timedelta(days=1)


def describe_first_run(app: Flask, server_url: str, *, with_link: bool) -> str | None:
    """Return what to print when the server starts. Return None if there is an account.

    It is a link to sign up, which replaces that of the last start. It is a command instead in logs
    that others collect, while sign-up is closed, without pages, and if the server knows no URL.

    Call this before workers are forked, which must not share a connection.
    """
    base = app.config["PUBLIC_URL"] or server_url
    has_page = app.config["PAGES"] and app.config["SIGNUP"] != "closed"
    with app.app_context():
        try:
            if fetch_one(sa.select(User.id).where(~User.is_pending).limit(1)):
                return None
            if not (with_link and has_page and base):
                return "There is no account yet. Run: flask users create NAME --moderator"
            execute(sa.delete(Invitation).where(Invitation.role == MODERATOR))
            expires_at = now() + LIFETIME
            _, code = create_invitation(None, role=MODERATOR, expires_at=expires_at)
            commit()
        except sa.exc.SQLAlchemyError as error:
            return f"No link for the first account can be created ({error_reason(error)})."
        finally:
            rollback()  # which returns a connection, to be closed with the others
            close_connections()
    return (
        "There is no account yet. To become the first moderator, sign up with this link. Keep it "
        f"secret. It works once, until {to_rfc3339(expires_at)}:\n{base}/signup#{code}"
    )
