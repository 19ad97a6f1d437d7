"""Notifications in words, for mails and pushes. Pages have a script for it: notifications.js."""

from datetime import datetime
from typing import Any

import sqlalchemy as sa
from flask_babel import gettext, lazy_gettext

from posting.db.base import Identifier
from posting.db.transactions import fetch_all
from posting.db.types import UtcDateTime
from posting.markdown import excerpt
from posting.notifications.models import (
    BACKUP,
    CONVERSATION,
    FOR_MODERATORS,
    MUTED,
    REACTION,
    RESET_LINK,
    ROLE,
    Notification,
    Subscription,
)
from posting.notifications.store import NOTIFICATIONS
from posting.posts.models import Post
from posting.web.schemas import Item, to_items

# By the kind of a notification, or by the new role.
SENTENCES = {
    "comment": lazy_gettext("%(actor)s commented on “%(title)s”."),
    "reply": lazy_gettext("%(actor)s replied to you on “%(title)s”."),
    "mention": lazy_gettext("%(actor)s mentioned you on “%(title)s”."),
    "reaction": lazy_gettext("%(actor)s reacted to what you wrote on “%(title)s”."),
    "application": lazy_gettext("%(actor)s asks for an account."),
    "report": lazy_gettext("%(actor)s reported something."),
    "backup": lazy_gettext("%(actor)s began to download a backup of the whole site."),
    "removal": lazy_gettext("A moderator has deleted something of yours."),
    "report_closed": lazy_gettext("A moderator has looked at what you reported."),
    "reset_link": lazy_gettext("%(actor)s made a link to choose a password for %(name)s."),
    "member": lazy_gettext("%(actor)s made %(name)s a member."),
    "moderator": lazy_gettext("%(actor)s made %(name)s a moderator."),
    "owner": lazy_gettext("%(actor)s made %(name)s an owner."),
}
# Of a kind that only a newer version knows, during an upgrade.
NEWS = lazy_gettext("%(actor)s has news for you.")

_has_muted = sa.exists().where(
    Subscription.post_id == Post.id,
    Subscription.user_id == sa.bindparam("recipient"),
    Subscription.level == MUTED,
)
# What is still news for a member: posts may have been muted since. Only the inbox has reactions.
UNREAD = NOTIFICATIONS.where(
    Notification.read_at.is_(None),
    Notification.kind != REACTION,
    sa.or_(Notification.kind.not_in(CONVERSATION), ~_has_muted),
)
_ONE = UNREAD.where(
    Notification.id == sa.bindparam("notification", type_=Identifier),
    Notification.created_at == sa.bindparam("time", type_=UtcDateTime()),
)


def find_unread(id: str, time: datetime, *, user_id: str, is_moderator: bool) -> Item | None:
    """Return a notification of a member, unless it is read or its post is muted."""
    reader = {"recipient": user_id, "is_moderator": is_moderator}
    items = to_items(fetch_all(_ONE, notification=id, time=time, **reader))
    return items[0] if items else None


def name_of(person: Any) -> str:
    """Return the name by which others know a member, or words for one who is gone."""
    if person is None:
        return str(gettext("a former member"))
    return str(person["display_name"] or person["username"])


def sentence_of(item: Item) -> str:
    """Return what a notification says."""
    kind, post, actor = item["kind"], item["post"], item["actor"]
    if actor:
        begin = name_of(actor)
    else:
        begin = gettext("The operator") if kind == ROLE else gettext("A former member")
    sentence = SENTENCES.get(item["reason"] if kind == ROLE else kind, NEWS)
    title = post["title"] if post else ""
    return str(sentence % {"actor": begin, "title": title, "name": item["excerpt"]})


def path_of(item: Item) -> str:
    """Return the path of what a notification is about."""
    post, comment = item["post"], item["comment"]
    if item["kind"] in FOR_MODERATORS:
        return "/moderation"
    if item["kind"] == BACKUP:
        return "/keeping#care"
    if item["kind"] in {ROLE, RESET_LINK}:
        return f"/@{item['excerpt']}"
    if post is None:
        return "/inbox"
    if comment:
        return f"/p/{post['id']}?comment={comment['id']}#c-{comment['id']}"
    return f"/p/{post['id']}"


def beginning_of(item: Item) -> str:
    """Return the beginning of the text that a notification is about, as plain text."""
    if item["comment"]:
        return excerpt(item["comment"]["excerpt"])
    if item["kind"] in {ROLE, RESET_LINK}:  # whose excerpt is a name
        return ""
    return str(item["excerpt"] or item["reason"] or "")
