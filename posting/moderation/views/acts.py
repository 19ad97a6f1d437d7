"""The acts of moderators: suspend members, lock and pin posts, remove what a member has written."""

from datetime import datetime
from typing import Any

from werkzeug.exceptions import Conflict, Forbidden, PreconditionRequired

from posting.accounts import store as account_store
from posting.accounts.current_user import (
    MODERATOR_REQUIRED,
    MODERATOR_SESSION_REQUIRED,
    OWNER_SESSION_REQUIRED,
    NotModerator,
    NotSiteOwner,
    current_user,
    lock_current_user,
)
from posting.accounts.deletion import clear_account, count_content, delete_a_step, delete_account
from posting.accounts.models import MEMBER, MODERATOR, OWNER, PENDING, SUSPENDED
from posting.accounts.passwords import ACCOUNT_LIMIT, PasswordsBusy, verify_own_password
from posting.accounts.recovery import LINK_LIFETIME, create_link
from posting.accounts.schemas import ResetLink, ResetLinkInput, RoleInput, User
from posting.accounts.store import (
    LastOwner,
    NoSuchUser,
    find_account_by_id,
    lock_account,
    lock_account_to_clear,
)
from posting.db.transactions import Row, after_commit, unit_of_work
from posting.db.types import now, to_rfc3339, truncate_to_milliseconds
from posting.moderation import log, schemas
from posting.moderation.members import describe_member, find_suspension, is_removal_under_way
from posting.moderation.models import REMOVED
from posting.moderation.store import close_reports_on_account, notify_of_removal
from posting.notifications.telling import tell_of_reset_link
from posting.posts import store
from posting.posts.deletion import finish_deletions
from posting.posts.store import NoSuchPost, get_marks, get_post_for_update
from posting.web.endpoint import Blueprint, Reply
from posting.web.errors import Coded, InvalidInput, Message, NoSuch
from posting.web.etags import Condition
from posting.web.hosts import base_url
from posting.web.schemas import Item

MAX_PINNED = 5
NOT_IN_FUTURE = Message("out_of_range", "Must be in the future.")

moderation = Blueprint("moderation", __name__, description="The acts of moderators, and their log")


class TargetIsModerator(Coded, Forbidden):
    error_code = "target_is_moderator"
    description = "This is a moderator, on whom only owners act."


class TargetIsOwner(Coded, Forbidden):
    error_code = "target_is_owner"
    description = "This is an owner. Take the role away first."


class TooManyPinned(Coded, Conflict):
    error_code = "too_many_pinned"
    description = f"There are {MAX_PINNED} pinned posts already; unpin one of them first."


class AlreadySuspended(Coded, PreconditionRequired):
    error_code = "already_suspended"
    description = (
        "This member is suspended already. Read the suspension, and send its ETag as If-Match to "
        "replace it."
    )


class NoSuchSuspension(NoSuch, thing="suspension"):
    pass


class NoSuchLock(NoSuch, thing="lock"):
    pass


class NoSuchPin(NoSuch, thing="pin"):
    pass


class HasContent(Coded, Conflict):
    error_code = "has_content"
    description = "The member has posts or comments left; remove them first."


@moderation.put(
    '/users/<nanoid("me"):id>/role',
    access=OWNER_SESSION_REQUIRED,
    limits=[ACCOUNT_LIMIT],
    body=RoleInput(),
    prepare=verify_own_password,
    returns=User(),
    errors=[NoSuchUser, LastOwner, PasswordsBusy],
)
def change_role(id: str, body: dict[str, str]) -> Reply:
    """Change the role of a member. All owners and the member get a notification.

    An owner can give up the role too, unless there is no other active owner.
    """
    role = body["role"]
    if all(owner.id != current_user.id for owner in account_store.lock_owners()):
        raise NotSiteOwner  # since this request began
    if role != OWNER:
        account_store.require_other_owner(id)
    user = lock_account_to_clear(id)
    if user is None or user.state == PENDING:
        raise NoSuchUser
    if account_store.set_role(user, role, actor_id=current_user.id):
        log.record_act(log.action_of(user.role, role), "user", id, id)
    return account_store.get_user(id)


@moderation.post(
    '/users/<nanoid("me"):id>/reset-link',
    access=MODERATOR_SESSION_REQUIRED,
    limits=[ACCOUNT_LIMIT],
    body=ResetLinkInput(),
    prepare=verify_own_password,
    status=201,
    returns=ResetLink(),
    errors=[TargetIsModerator, TargetIsOwner, NoSuchUser, PasswordsBusy],
)
def create_reset_link(id: str, body: dict[str, str]) -> Reply:
    """Create a link by which a member chooses a new password, once and within a day.

    Moderators do this for members, and owners for everybody. The member gets a notification. If
    the member is an owner, all owners get it.
    """
    if current_user.is_owner:
        if all(owner.id != current_user.id for owner in account_store.lock_owners()):
            raise NotModerator  # since this request began
    else:
        lock_current_user(exclusively=True)
        if account_store.get_user(current_user.id)["role"] == MEMBER:
            raise NotModerator
    user = _lock_member(id, including_owners=True)
    code, expires_at = create_link(id, LINK_LIFETIME)
    log.record_act("reset link", "user", id, id)
    is_owner = user.role == OWNER
    tell_of_reset_link(id, user.username, current_user.id, is_owner=is_owner)
    url = f"{base_url()}/reset#{code}"
    return {"url": url, "expires_at": to_rfc3339(expires_at)}


@moderation.get(
    '/users/<nanoid("me"):id>/suspension',
    access=MODERATOR_REQUIRED,
    returns=schemas.Suspension(),
    errors=[NoSuchUser, NoSuchSuspension],
)
def get_suspension(id: str) -> Reply:
    """Read the suspension of a member."""
    user = find_account_by_id(id)
    if user is None or user.state == PENDING:
        raise NoSuchUser
    suspension = find_suspension(id)
    if suspension is None:
        raise NoSuchSuspension
    return suspension


@moderation.put(
    '/users/<nanoid("me"):id>/suspension',
    access=MODERATOR_REQUIRED,
    body=schemas.SuspensionInput(),
    conditional=True,
    returns=schemas.Suspension(),
    errors=[TargetIsModerator, TargetIsOwner, NoSuchUser, AlreadySuspended],
)
def suspend(id: str, body: dict[str, Any], condition: Condition) -> Reply:
    """Suspend a member, who is signed out everywhere and reads the reason at the next sign-in.

    Open reports on the account itself are closed. To replace a suspension, send its ETag as
    `If-Match`, so that you do not overwrite what another moderator has just decided.
    """
    until = body.get("until")
    if until and until <= now():
        raise InvalidInput.at("/until", NOT_IN_FUTURE)
    until = until and truncate_to_milliseconds(until)
    _lock_member(id)
    current = find_suspension(id)
    condition.require_body(current)
    wanted = {"reason": body["reason"], "until": to_rfc3339(until) if until else None}
    if current and wanted.items() <= current.items():
        return current  # the request was sent again
    if current and condition.if_match is None:
        raise AlreadySuspended
    since = account_store.suspend_account(id, reason=body["reason"], until=until)
    log.record_act("suspended", "user", id, id, body["reason"])
    close_reports_on_account(id, SUSPENDED, current_user.id)
    return wanted | {"since": to_rfc3339(since)}


@moderation.delete(
    '/users/<nanoid("me"):id>/suspension',
    access=MODERATOR_REQUIRED,
    conditional=True,
    status=204,
    errors=[TargetIsModerator, TargetIsOwner, NoSuchUser],
)
def lift_suspension(id: str, condition: Condition) -> Reply:
    """End the suspension of a member, if there is one."""
    is_suspended = _lock_member(id).state == SUSPENDED
    condition.require_body(find_suspension(id))
    if is_suspended:
        account_store.lift_suspension(id)
        log.record_act("restored", "user", id, id)
    return None


@moderation.get(
    "/posts/<nanoid:id>/lock",
    access=MODERATOR_REQUIRED,
    returns=schemas.Mark(),
    errors=[NoSuchPost, NoSuchLock],
)
def get_lock(id: str) -> Reply:
    """Read since when a post is locked."""
    lock = _mark_since(get_marks(id).locked_at)
    if lock is None:
        raise NoSuchLock
    return lock


@moderation.put(
    "/posts/<nanoid:id>/lock",
    access=MODERATOR_REQUIRED,
    conditional=True,
    status=204,
    errors=[NoSuchPost],
)
def lock_post(id: str, condition: Condition) -> Reply:
    """Lock a post, so that only moderators can comment on it."""
    post = get_post_for_update(id)
    condition.require_body(_mark_since(post.locked_at))
    if store.close_discussion(post):
        log.record_act("locked", "post", id, post.author_id)
    return None


@moderation.delete(
    "/posts/<nanoid:id>/lock",
    access=MODERATOR_REQUIRED,
    conditional=True,
    status=204,
    errors=[NoSuchPost],
)
def unlock_post(id: str, condition: Condition) -> Reply:
    """Let all members comment on a post again."""
    post = get_post_for_update(id)
    condition.require_body(_mark_since(post.locked_at))
    if store.open_discussion(post):
        log.record_act("unlocked", "post", id, post.author_id)
    return None


@moderation.get(
    "/posts/<nanoid:id>/pin",
    access=MODERATOR_REQUIRED,
    returns=schemas.Mark(),
    errors=[NoSuchPost, NoSuchPin],
)
def get_pin(id: str) -> Reply:
    """Read since when a post is pinned."""
    pin = _mark_since(get_marks(id).pinned_at)
    if pin is None:
        raise NoSuchPin
    return pin


@moderation.put(
    "/posts/<nanoid:id>/pin",
    access=MODERATOR_REQUIRED,
    conditional=True,
    status=204,
    errors=[NoSuchPost, TooManyPinned],
)
def pin_post(id: str, condition: Condition) -> Reply:
    """Pin a post, so that it is first on the front page. At most five are pinned."""
    store.lock_pins()
    post = get_post_for_update(id)
    condition.require_body(_mark_since(post.pinned_at))
    if store.count_other_pinned_posts(id) >= MAX_PINNED:
        raise TooManyPinned
    if store.pin_post(post):
        log.record_act("pinned", "post", id, post.author_id)
    return None


@moderation.delete(
    "/posts/<nanoid:id>/pin",
    access=MODERATOR_REQUIRED,
    conditional=True,
    status=204,
    errors=[NoSuchPost],
)
def unpin_post(id: str, condition: Condition) -> Reply:
    """Return a post to its place in the lists."""
    post = get_post_for_update(id)
    condition.require_body(_mark_since(post.pinned_at))
    if store.unpin_post(post):
        log.record_act("unpinned", "post", id, post.author_id)
    return None


def _mark_since(time: datetime | None) -> Item | None:
    """Return a lock or a pin as it is sent, or None if the post has none."""
    return {"since": to_rfc3339(time)} if time else None


@moderation.post(
    "/moderation/users/<nanoid:id>/removal",
    access=MODERATOR_REQUIRED,
    body=schemas.RemovalInput(),
    returns=schemas.RemovalStep(),
    errors=[TargetIsModerator, TargetIsOwner, NoSuchUser],
)
def remove_content(id: str, body: dict[str, str | None]) -> Reply:
    """Delete some of the posts and comments of a member. Repeat this until none is left.

    The first step notifies the member and is in the log. If only texts written after it are left,
    the next step counts as a first one.
    """
    reason = body.get("reason")
    _require_member(find_account_by_id(id))
    _require_member(lock_account_to_clear(id))
    is_under_way = is_removal_under_way(id, current_user.id)
    step = delete_a_step(id)
    if (step.cleared or step.has_more) and not is_under_way:
        log.record_act("deleted", "content", id, id, reason)
        notify_of_removal(id, reason)
    after_commit(finish_deletions)
    return {"removed": step.cleared, "left": count_content(id)}


def clear_member(id: str, query: dict[str, str], condition: Condition) -> None:
    """Delete what belongs to the account of a member, who has no posts and comments left."""
    with unit_of_work():
        _lock_member(id)
        condition.require_body(describe_member(id))
    if count_content(id):
        raise HasContent
    clear_account(id, with_content=True)  # notifications, and what was written meanwhile


@moderation.delete(
    "/moderation/users/<nanoid:id>",
    access=MODERATOR_REQUIRED,
    query=schemas.AccountRemovalQuery(),
    conditional=True,
    prepare=clear_member,
    status=204,
    errors=[TargetIsModerator, TargetIsOwner, NoSuchUser, HasContent],
)
def delete_member(id: str, query: dict[str, str], condition: Condition) -> Reply:
    """Delete the account of a member who has no posts and comments left."""
    _lock_member(id)
    delete_account(id, with_content=True)
    log.record_act("deleted", "user", id, id, query.get("reason"))
    close_reports_on_account(id, REMOVED, current_user.id)
    return None


def _lock_member(id: str, *, including_owners: bool = False) -> Row:
    """Lock the account of a member. Raise 404 if it is pending, and 403 as `_require_member` does.

    Before any lock, so that two moderators cannot wait for each other.
    """
    _require_member(find_account_by_id(id), including_owners=including_owners)
    return _require_member(lock_account(id), including_owners=including_owners)


def _require_member(user: Row | None, *, including_owners: bool = False) -> Row:
    """Return an account on which the current user may act. With the flag, owners act on owners."""
    if user is None or user.state == PENDING:
        raise NoSuchUser
    if user.role == OWNER and not (including_owners and current_user.is_owner):
        raise TargetIsOwner
    if user.role == MODERATOR and not current_user.is_owner:
        raise TargetIsModerator
    return user
