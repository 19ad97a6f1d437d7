"""The facts about a member, and the log of all acts, for moderators."""

from typing import Any

from flask import current_app, g, request

from posting.accounts.current_user import (
    MODERATOR_REQUIRED,
    NotModerator,
    current_user,
    find_reader,
    refuse_invalid_token,
    require_moderator,
    require_reader,
    require_user,
)
from posting.accounts.store import NoSuchUser, count_applications
from posting.accounts.tokens import InvalidToken
from posting.config import everyone_may_read
from posting.moderation import log, schemas
from posting.moderation.members import describe_member
from posting.moderation.store import count_open_reports
from posting.web.endpoint import Access, Blueprint, Reply
from posting.web.errors import NotSignedIn
from posting.web.schemas import Item

records = Blueprint("records", __name__, description="What moderators see")


def require_log_reader() -> None:
    """Raise an error unless the client may read the log, which the settings may open to readers."""
    if current_app.config["MODERATION_LOG"] == "moderators":
        require_moderator()
    elif find_reader(request):
        require_user()
    elif everyone_may_read(current_app.config):
        refuse_invalid_token()
    else:
        require_reader()  # which raises the error


WRITTEN = {"post", "comment", "image", "file"}  # kinds of targets that everybody may read

LOG_READERS = Access(
    require_log_reader,
    security=MODERATOR_REQUIRED.security,
    errors=[NotSignedIn, InvalidToken, NotModerator],
)


@records.get(
    "/moderation/users/<nanoid:id>",
    access=MODERATOR_REQUIRED,
    returns=schemas.Member(),
    errors=[NoSuchUser],
)
def get_member(id: str) -> Reply:
    """Read what moderators see of an account, also of one that waits for approval."""
    member = describe_member(id)
    if member is None:
        raise NoSuchUser
    return member


@records.get("/moderation/open", access=MODERATOR_REQUIRED, returns=schemas.OpenCounts())
def count_open() -> Reply:
    """Count what waits for a moderator."""
    return {
        "reports": count_open_reports(schemas.MAX_COUNT),
        "applications": count_applications(schemas.MAX_COUNT),
    }


@records.get(
    "/moderation/log",
    access=LOG_READERS,
    query=schemas.LogQuery(),
    returns=schemas.Act(many=True),
    headers=["Link"],
)
def list_acts(query: dict[str, Any]) -> Reply:
    """List the acts of moderators and operators, newest first.

    With `POSTING_MODERATION_LOG=public`, everybody who may read the community may read the log,
    but only moderators see whom an act concerns, and may ask for the acts on a `user`.
    """
    is_moderator = g.user_id is not None and current_user.is_moderator
    user = query.get("user")
    if user:
        require_moderator()
    page = log.list_acts(limit=query["limit"], cursor=query.get("cursor"), user_id=user)
    acts = page.items if is_moderator else [_without_names(act) for act in page.items]
    return acts, page.headers


def _without_names(act: Item) -> Item:
    """Return an act without its member, and without what leads to the member."""
    kind = act["target"]["kind"]
    target = act["target"] | ({} if kind in WRITTEN else {"id": None})
    reason = None if kind == "report" else act["reason"]  # the note, which is for the reporter
    return act | {"user": None, "target": target, "reason": reason}
