"""Applications: accounts that wait until a moderator approves or refuses them."""

from typing import Any

from posting.accounts import schemas, store
from posting.accounts.current_user import MODERATOR_REQUIRED
from posting.accounts.store import NoSuchApplication
from posting.mail import store as mails
from posting.mail.models import APPROVED
from posting.moderation import log
from posting.web.endpoint import Blueprint, Reply
from posting.web.hosts import external_url
from posting.web.schemas import PageQuery

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
    page = store.list_applications(limit=query["limit"], cursor=query.get("cursor"))
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
    if not store.approve_account(id):
        raise NoSuchApplication
    log.record_act("approved", "user", id, id)
    mails.queue_mail(APPROVED, id)
    return store.get_user(id), {"Location": external_url("users.get_user", id=id)}


@applications.delete(
    "/applications/<nanoid:id>", access=MODERATOR_REQUIRED, status=204, errors=[NoSuchApplication]
)
def refuse(id: str) -> Reply:
    """Refuse an account, which is deleted."""
    if not store.refuse_account(id):
        raise NoSuchApplication
    log.record_act("refused", "user", id, id)
    return None
