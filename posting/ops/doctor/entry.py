"""Check that somebody can let people in."""

import sqlalchemy as sa
from flask import current_app

from posting.accounts.models import MODERATOR, User
from posting.ops.doctor.findings import Finding, ok, warning

PROMOTE = "Run: flask users promote NAME, or: flask users create NAME --moderator"


def check(connection: sa.Connection) -> Finding:
    """Check that there is a moderator if only moderators let people in."""
    signup, inviters = current_app.config["SIGNUP"], current_app.config["INVITATIONS"]
    if signup == "approval":
        rule, fix = "New accounts need the approval of a moderator", PROMOTE
    elif signup == "invitation" and inviters == "moderators":
        rule = "New accounts need an invitation of a moderator"
        fix = f"{PROMOTE}. An operator can invite people, too: flask invitations create"
    elif signup == "closed":
        return ok("Sign-up is closed. To create an account, run: flask users create NAME")
    else:
        return ok("Sign-up needs no moderator")
    is_moderator = sa.select(User.id).where(User.role == MODERATOR, User.is_active)
    if connection.scalar(sa.select(is_moderator.exists())):
        return ok(rule)
    return warning(f"{rule}, but there is none who is active", fix)
