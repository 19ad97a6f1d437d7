"""Invitations: create, list, read, end."""

from typing import Any

from flask import current_app

from posting.accounts.current_user import (
    SIGNED_IN,
    NotModerator,
    current_user,
    current_user_id,
    lock_current_user,
    require_user,
)
from posting.accounts.views.auth import SignUpClosed, refuse_closed_signup
from posting.invitations import schemas, store
from posting.invitations.store import NoSuchInvitation, TooManyInvitations
from posting.moderation import log
from posting.web.endpoint import Access, Blueprint, Reply
from posting.web.etags import Condition, etag_header
from posting.web.hosts import external_url
from posting.web.limits import Limit
from posting.web.logs import audit
from posting.web.schemas import Item, PageQuery

INVITATION_LIMIT = Limit("invitations", "LIMIT_POSTS", current_user_id)

invitations = Blueprint("invitations", __name__, description="Invitations to sign up")


def require_inviter() -> None:
    """Raise an error unless the request is signed in, and 403 unless this user may invite."""
    require_user()
    refuse_closed_signup()
    if current_app.config["INVITATIONS"] == "moderators" and not current_user.is_moderator:
        raise NotModerator


INVITER_REQUIRED = Access(
    require_inviter,
    security=SIGNED_IN.security,
    errors=[*SIGNED_IN.errors, SignUpClosed, NotModerator],
    write_errors=SIGNED_IN.write_errors,
)


@invitations.get(
    "/invitations",
    access=SIGNED_IN,
    query=PageQuery(),
    returns=schemas.Invitation(many=True),
    headers=["Link"],
)
def list_invitations(query: dict[str, Any]) -> Reply:
    """List your own invitations, newest first; for moderators, those of everyone."""
    creator_id = None if current_user.is_moderator else current_user.id
    page = store.list_invitations(
        limit=query["limit"], cursor=query.get("cursor"), creator_id=creator_id
    )
    return page.items, page.headers


@invitations.post(
    "/invitations",
    access=INVITER_REQUIRED,
    limits=[INVITATION_LIMIT],
    body=schemas.InvitationInput(),
    status=201,
    returns=schemas.NewInvitation(),
    headers=["Location"],
    errors=[TooManyInvitations],
)
def create_invitation(body: dict[str, Any]) -> Reply:
    """Create an invitation. Only this response contains its URL."""
    lock_current_user(exclusively=True)
    invitation, code = store.create_invitation(current_user.id, **body)
    audit("invitation-created", invitation=invitation["id"])
    invitation["created_by"] = current_user.as_author()
    headers = etag_header(invitation)
    headers["Location"] = external_url("invitations.get_invitation", id=invitation["id"])
    return invitation | {"url": f"{external_url('auth.sign_up')}#{code}"}, headers


@invitations.get(
    "/invitations/<nanoid:id>",
    access=SIGNED_IN,
    returns=schemas.Invitation(),
    errors=[NoSuchInvitation],
)
def get_invitation(id: str) -> Reply:
    """Read one of your invitations; as a moderator, any."""
    return _get_invitation(id)


@invitations.delete(
    "/invitations/<nanoid:id>",
    access=SIGNED_IN,
    conditional=True,
    status=204,
    errors=[NoSuchInvitation],
)
def end_invitation(id: str, condition: Condition) -> Reply:
    """End one of your invitations; as a moderator, any. Accounts created by it stay."""
    store.lock_invitation(id)
    invitation = _get_invitation(id)
    condition.require_body(invitation)
    store.end_invitation(id)
    creator = invitation["created_by"]
    if creator is None or creator["id"] != current_user.id:
        log.record_act("ended", "invitation", id, creator and creator["id"])
    return None


def _get_invitation(id: str) -> Item:
    """Return an invitation that the current user may see. Raise NoSuchInvitation."""
    invitation = store.get_invitation(id)
    creator = invitation["created_by"]
    if not (current_user.is_moderator or (creator and creator["id"] == current_user.id)):
        raise NoSuchInvitation
    return invitation
