"""Check that there is a moderator, who lets people in and looks at reports."""

import sqlalchemy as sa
from flask import current_app

from posting.accounts.models import MODERATOR, User
from posting.ops.doctor.findings import Finding, ok, warning

PROMOTE = "Run: flask users promote NAME, or: flask users create NAME --moderator"


def check(connection: sa.Connection) -> Finding:
    """Check that there is a moderator, if there are accounts or only moderators let people in."""
    is_moderator = sa.select(User.id).where(User.role == MODERATOR, User.is_active)
    if connection.scalar(sa.select(is_moderator.exists())):
        return ok("There is a moderator")
    signup, inviters = current_app.config["SIGNUP"], current_app.config["INVITATIONS"]
    if signup == "approval":
        return warning(
            "New accounts need the approval of a moderator, but there is none who is active",
            PROMOTE,
        )
    if signup == "invitation" and inviters == "moderators":
        return warning(
            "New accounts need an invitation of a moderator, but there is none who is active",
            f"{PROMOTE}. An operator can invite people, too: flask invitations create",
        )
    if connection.scalar(sa.select(sa.select(User.id).exists())):
        return warning("No active account is that of a moderator, who looks at reports", PROMOTE)
    return ok("There is no account yet")
