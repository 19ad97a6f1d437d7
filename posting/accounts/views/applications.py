"""Applications: accounts that wait until a moderator approves or refuses them."""

from typing import Any

import sqlalchemy as sa

from posting.accounts import queries, schemas
from posting.accounts.current_user import MODERATOR_REQUIRED
from posting.accounts.models import User
from posting.accounts.queries import NoSuchApplication
from posting.accounts.store import approve_account
from posting.db.transactions import execute
from posting.moderation import log
from posting.notifications.telling import forget_application
from posting.web.endpoint import Blueprint, Reply
from posting.web.pagination import paginate
from posting.web.schemas import PageQuery
from posting.web.urls import external_url

applications = Blueprint(
    "applications", __name__, description="Accounts that wait for the approval of a moderator"
)


@applications.get(
    "/applications",
    access=MODERATOR_REQUIRED,
    query=PageQuery(),
    returns=schemas.Application(many=True),
    headers=["Link"],
)
def list_applications(query: dict[str, Any]) -> Reply:
    """List the accounts that wait for approval, oldest first."""
    page = paginate(
        queries.APPLICATIONS,
        limit=query["limit"],
        cursor=query.get("cursor"),
        name="applications",
        newest_first=False,
    )
    return page.items, page.headers


@applications.post(
    "/applications/<nanoid:id>/approval",
    access=MODERATOR_REQUIRED,
    status=201,
    returns=schemas.User(),
    headers=["Location"],
    errors=[NoSuchApplication],
)
def approve(id: str) -> Reply:
    """Approve an account, so that its owner can sign in."""
    if not approve_account(id):
        raise NoSuchApplication
    log.record("approved", "user", id, id)
    return queries.get_user(id), {"Location": external_url("users.get_user", id=id)}


@applications.delete(
    "/applications/<nanoid:id>", access=MODERATOR_REQUIRED, status=204, errors=[NoSuchApplication]
)
def refuse(id: str) -> Reply:
    """Refuse an account, which is deleted."""
    pending = sa.select(User.id).where(User.id == id, User.is_pending)
    if not execute(pending.with_for_update()).all():
        raise NoSuchApplication
    forget_application(id)
    execute(sa.delete(User).where(User.id == id))
    log.record("refused", "user", id, id)
    return None
