"""The contents of mails. Each is made when it is sent, from the data at that time."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import groupby

import sqlalchemy as sa
from flask import current_app
from flask_babel import LazyString, format_decimal, gettext, lazy_gettext, ngettext

from posting.accounts.models import User
from posting.comments.models import Comment
from posting.db.transactions import Row, fetch_all, fetch_one
from posting.db.types import UtcDateTime, now
from posting.mail import store
from posting.mail.models import (
    ADDRESS_CHANGED,
    APPROVED,
    CONFIRM_ADDRESS,
    CONFIRMATION,
    DAILY,
    DIGEST,
    LETTER,
    LINK,
    NONE,
    NOTIFICATION,
    NOTIFICATIONS,
    PASSWORD,
    PASSWORD_CHANGED,
    PASSWORD_LIFETIME,
    PASSWORD_LINK,
    PASSWORD_LINKS,
    WEEKLY,
    WEEKLY_LETTER,
    WHOLE,
)
from posting.markdown import BEGINNING as BEGINNING_LENGTH
from posting.markdown import excerpt
from posting.notifications.models import CONVERSATION
from posting.notifications.models import Notification as NotificationRow
from posting.notifications.sentences import UNREAD, find_unread, name_of, path_of, sentence_of
from posting.pages import markdown
from posting.posts.models import Post
from posting.web.schemas import Item, to_items

MAX_WHOLE = 20_000  # characters; of a longer text, a mail has the beginning
MAX_WHOLE_IN_DIGEST = 3_000
MAX_NOTIFICATIONS = 200  # in a digest
MAX_POSTS = 20  # in a digest
QUOTES_PER_POST = 3  # in a digest
BEST = 10  # posts in a letter
WEEK = timedelta(days=7)

# Why a member gets a digest, by the choice of the member.
REASON = lazy_gettext("You get mails about notifications from %(community)s.")
REASONS = {
    DAILY: lazy_gettext("You get a daily mail about what you have not read at %(community)s."),
    WEEKLY: lazy_gettext("You get a weekly mail about what you have not read at %(community)s."),
}

_SINCE = (
    UNREAD.where(
        NotificationRow.created_at > sa.bindparam("since", type_=UtcDateTime()),
        NotificationRow.created_at <= sa.bindparam("until", type_=UtcDateTime()),
    )
    .order_by(NotificationRow.created_at, NotificationRow.id)
    .limit(MAX_NOTIFICATIONS)
)
_CONTENTS = sa.select(Comment.id, sa.func.substr(Comment.content, 1, MAX_WHOLE + 1).label("text"))
_CONTENTS = _CONTENTS.where(Comment.id.in_(sa.bindparam("ids", expanding=True)))
_CONTENT_OF_POST = sa.select(sa.func.substr(Post.content, 1, MAX_WHOLE + 1).label("text")).where(
    Post.id == sa.bindparam("post"), Post.deleted_at.is_(None)
)
_BEST = (
    sa.select(
        Post.id,
        Post.title,
        Post.comment_count,
        sa.func.substr(Post.content, 1, BEGINNING_LENGTH).label("beginning"),
        User.username,
        User.display_name,
    )
    .outerjoin(User, User.id == Post.author_id)
    .where(Post.created_at > sa.bindparam("since", type_=UtcDateTime()), Post.deleted_at.is_(None))
    .order_by(Post.comment_count.desc(), Post.created_at.desc(), Post.id)
    .limit(BEST)
)


@dataclass(frozen=True)
class Quote:
    """A text that somebody has written: as plain text, and as safe HTML."""

    text: str
    html: str
    author: str = ""


@dataclass(frozen=True)
class Part:
    """A part of a mail: a sentence, texts of others, and a link."""

    words: str
    quotes: Sequence[Quote] = ()
    url: str = ""
    label: str = ""  # of the link in HTML


@dataclass(frozen=True)
class Content:
    """The content of a mail.

    `ends` is NOTIFICATIONS or LETTER if a link in the mail ends such mails, and otherwise empty.
    """

    address: str
    name: str
    subject: str
    parts: Sequence[Part]
    why: str
    ends: str = ""
    key: str = field(default="", repr=False)
    thread: str | None = None  # the id of the post that it is about


def make_content(row: Row) -> Content | None:
    """Return the mail for a row of the outbox, or None if there is nothing to say any more."""
    return KINDS[row.kind](row)


def _url(path: str) -> str:
    return f"{current_app.config['PUBLIC_URL']}{path}"


def _community() -> str:
    return str(current_app.config["NAME"])


def _confirmation(row: Row) -> Content | None:
    """Ask the owner of an address whether it is theirs. The account may wait for approval."""
    mailbox, account = store.find_mailbox(row.user_id), store.find_unsuspended(row.user_id)
    if not account or not mailbox or not mailbox.pending_address:
        return None
    if mailbox.pending_until != row.about_at or mailbox.pending_until < now():  # it was replaced
        return None
    code = store.create_mail_link(row.user_id, CONFIRMATION, mailbox.pending_address)
    return Content(
        mailbox.pending_address,
        "",  # others could write to strangers by their display names
        gettext("Confirm your address for %(community)s", community=_community()),
        [
            Part(
                gettext(
                    "This address was entered for the account %(username)s at %(community)s.",
                    username=account.username,
                    community=_community(),
                )
            ),
            Part(
                gettext(
                    "If the address is yours, confirm it on this page. The link works once, and "
                    "expires after one day."
                ),
                url=_url(f"/confirm#{code}"),
                label=gettext("Confirm the address"),
            ),
            Part(
                gettext(
                    "If it is not yours, ignore this mail. Until somebody confirms the address, "
                    "it gets nothing but mails like this one."
                )
            ),
        ],
        gettext("Somebody has entered this address."),
    )


def _password_link(row: Row) -> Content | None:
    member = None if _is_late(row) else store.find_recipient(row.user_id)
    return _password_mail([member] if member and member.address else [])


def _password_links(row: Row) -> Content | None:
    mailbox = None if _is_late(row) else store.find_mailbox(row.user_id)
    return _password_mail(
        store.list_sharers(mailbox.address) if mailbox and mailbox.address else []
    )


def _is_late(row: Row) -> bool:
    """Return whether a link has waited for as long as it would work."""
    return bool(now() > row.queued_at + PASSWORD_LIFETIME)


def _password_mail(members: Sequence[Row]) -> Content | None:
    """Return a mail with a link for each of the members, who have the same address."""
    if not members:
        return None
    links = [
        Part(
            gettext(
                "Choose a new password for %(username)s on this page. The link works once, and "
                "expires after one hour.",
                username=member.username,
            ),
            url=_url(f"/reset#{store.create_mail_link(member.id, PASSWORD, member.address)}"),
            label=gettext("Choose a password for %(username)s", username=member.username),
        )
        for member in members
    ]
    nothing = Part(
        gettext("If you did not ask for this, ignore this mail. Your password stays as it is.")
    )
    subject = gettext("A new password for %(community)s", community=_community())
    why = gettext("Somebody has asked for a new password with your name or your address.")
    first = members[0]
    return Content(first.address, name_of(first._mapping), subject, [*links, nothing], why)


def _password_changed(row: Row) -> Content | None:
    return _notice(
        store.find_recipient(row.user_id),
        lazy_gettext("Your password was changed"),
        lazy_gettext(
            "The password of your account %(username)s at %(community)s was changed. If you did "
            "not do this, choose a new password at once:"
        ),
        "/reset",
    )


def _approved(row: Row) -> Content | None:
    return _notice(
        store.find_recipient(row.user_id),
        lazy_gettext("Welcome to %(community)s"),
        lazy_gettext("A moderator has approved your account %(username)s. You can sign in now:"),
        "/signin",
    )


def _notice(
    member: Row | None, subject: LazyString, words: LazyString, path: str
) -> Content | None:
    """Return a short mail to a member about their account."""
    if member is None or member.address is None:
        return None
    values = {"community": _community(), "username": member.username}
    part = Part(words % values, url=_url(path), label=_url(path))
    why = gettext("You have an account at %(community)s.", community=_community())
    name = name_of(member._mapping)
    return Content(member.address, name, subject % values, [part], why)


def _address_changed(row: Row) -> Content | None:
    """Tell a former address that it is not used any more."""
    address, account = store.find_former_address(row.id), store.find_unsuspended(row.user_id)
    if address is None or account is None:
        return None
    mailbox = store.find_mailbox(row.user_id)
    if mailbox and mailbox.address == address:  # it is used again
        return None
    words = gettext(
        "The account %(username)s at %(community)s no longer uses this address. If you did not "
        "change this, tell the people who run %(community)s:",
        username=account.username,
        community=_community(),
    )
    return Content(
        address,
        "",
        gettext(
            "Your account at %(community)s no longer uses this address", community=_community()
        ),
        [Part(words, url=_url("/"), label=_community())],
        gettext("This was the address of the account until now."),
    )


def _notification(row: Row) -> Content | None:
    """Return the mail about one notification, to a member who wants each."""
    member = store.find_recipient(row.user_id)
    if not store.gets_mails(member) or member.mail == NONE:
        return None
    reader = {"user_id": member.id, "is_moderator": member.is_moderator}
    item = find_unread(row.about, row.about_at, **reader)
    if item is None:
        return None
    quotes = _quotes([item], member.text, names=False)
    post = item["post"]
    return Content(
        member.address,
        name_of(member._mapping),
        _subject_of(item),
        [Part(sentence_of(item), quotes, _url(path_of(item)), gettext("Read it, and answer"))],
        gettext("You get a mail for each notification from %(name)s.", name=_community()),
        NOTIFICATIONS,
        member.key,
        post["id"] if post else None,
    )


def _digest(row: Row) -> Content | None:
    """Return the mail about what a member has not read since the last one."""
    member = store.find_recipient(row.user_id)
    if not store.gets_mails(member) or member.mail == NONE:
        return None
    reader = {"recipient": member.id, "is_moderator": member.is_moderator}
    items = to_items(fetch_all(_SINCE, since=row.about_at, until=row.queued_at, **reader))
    if not items:
        return None
    groups = _by_post(items)
    parts = [
        _part_of(group, member.text, f"part-{number}")
        for number, group in enumerate(groups[:MAX_POSTS])
    ]
    if len(groups) > MAX_POSTS or len(items) == MAX_NOTIFICATIONS:
        words = gettext("There is more in your inbox.")
        parts.append(Part(words, url=_url("/inbox"), label=gettext("Your inbox")))
    return Content(
        member.address,
        name_of(member._mapping),
        _subject_of_digest(items),
        parts,
        REASONS.get(member.mail, REASON) % {"community": _community()},
        NOTIFICATIONS,
        member.key,
    )


def _weekly_letter(row: Row) -> Content | None:
    """Return the letter about the posts of the week that have the most comments."""
    member = store.find_recipient(row.user_id)
    if not store.gets_mails(member) or not member.letter:
        return None
    posts = fetch_all(_BEST, since=row.queued_at - WEEK)
    if not posts:
        return None
    parts = []
    for post in posts:
        quotes = [] if member.text == LINK else [_beginning_of(post.beginning)]
        parts.append(Part(_name_of_post(post), quotes, _url(f"/p/{post.id}"), gettext("Read it")))
    return Content(
        member.address,
        name_of(member._mapping),
        gettext("The week at %(community)s", community=_community()),
        parts,
        gettext("You get the weekly letter of %(community)s.", community=_community()),
        LETTER,
        member.key,
    )


KINDS: dict[str, Callable[[Row], Content | None]] = {
    CONFIRM_ADDRESS: _confirmation,
    PASSWORD_LINK: _password_link,
    PASSWORD_LINKS: _password_links,
    PASSWORD_CHANGED: _password_changed,
    ADDRESS_CHANGED: _address_changed,
    APPROVED: _approved,
    NOTIFICATION: _notification,
    DIGEST: _digest,
    WEEKLY_LETTER: _weekly_letter,
}


def _subject_of(item: Item) -> str:
    """Return the subject of a mail about one notification. It is the same for one conversation."""
    if item["kind"] in CONVERSATION and item["post"]:
        return f"Re: {item['post']['title']}"
    return sentence_of(item).removesuffix(".")


def _subject_of_digest(items: Sequence[Item]) -> str:
    if len(items) == 1:
        return _subject_of(items[0])
    if len(items) == MAX_NOTIFICATIONS:
        words = lazy_gettext("%(number)s or more new notifications at %(community)s")
        return str(words % {"number": MAX_NOTIFICATIONS, "community": _community()})
    words = ngettext(
        "%(num)s new notification at %(community)s",
        "%(num)s new notifications at %(community)s",
        len(items),
        community=_community(),
    )
    return str(words)


def _name_of_post(post: Row) -> str:
    """Return the title of a post in a letter, its author, and how many comments it has."""
    author = name_of(post._mapping if post.username else None)
    if not post.comment_count:
        return str(gettext("“%(title)s” by %(author)s", title=post.title, author=author))
    words = ngettext(
        "“%(title)s” by %(author)s, %(number)s comment",
        "“%(title)s” by %(author)s, %(number)s comments",
        post.comment_count,
        title=post.title,
        author=author,
        number=format_decimal(post.comment_count),
    )
    return str(words)


def _by_post(items: Iterable[Item]) -> list[list[Item]]:
    """Group notifications about the comments on one post, in the order of the first of each."""
    places: dict[str, int] = {}

    def place(item: Item) -> int:
        is_talk = item["kind"] in CONVERSATION and item["post"]
        return places.setdefault(item["post"]["id"] if is_talk else item["id"], len(places))

    return [list(group) for _, group in groupby(sorted(items, key=place), key=place)]


def _part_of(group: Sequence[Item], texts: str, name: str) -> Part:
    """Return the part of a digest about one post, or about one other notification.

    `name` is different for each part.
    """
    first = group[0]
    quotes = _quotes(
        group[:QUOTES_PER_POST], texts, names=len(group) > 1, most=MAX_WHOLE_IN_DIGEST, name=name
    )
    label = gettext("Read it, and answer") if first["post"] else gettext("Look at it")
    if len(group) == 1:
        return Part(sentence_of(first), quotes, _url(path_of(first)), label)
    names = [*dict.fromkeys(name_of(item["actor"]) for item in group)]
    shown = ", ".join(names[:3])
    if len(names) > 3:
        shown = gettext("%(names)s and others", names=shown)
    comments = [item for item in group if item["comment"]]
    values = {"title": first["post"]["title"], "names": shown}
    if len(comments) == len(group):
        words = ngettext(
            "%(num)s new comment on “%(title)s” from %(names)s.",
            "%(num)s new comments on “%(title)s” from %(names)s.",
            len(group),
            **values,
        )
    else:
        words = ngettext(
            "%(num)s new notification about “%(title)s” from %(names)s.",
            "%(num)s new notifications about “%(title)s” from %(names)s.",
            len(group),
            **values,
        )
    if len(group) > QUOTES_PER_POST:
        label = gettext("Read all %(number)s", number=len(group))
    return Part(words, quotes, _url(path_of([*comments, first][0])), label)


def _quotes(
    items: Sequence[Item], texts: str, *, names: bool, most: int = MAX_WHOLE, name: str = "text"
) -> list[Quote]:
    """Return as much of the texts that notifications are about as a member has chosen.

    Of a text with more than `most` characters, it is the beginning in any case. `name` is different
    for each part of a mail.
    """
    if texts == LINK:
        return []
    found: list[Quote] = []
    wholes: dict[str, str] = {}
    if texts == WHOLE and (ids := [item["comment"]["id"] for item in items if item["comment"]]):
        wholes = {row.id: row.text for row in fetch_all(_CONTENTS, ids=ids) if row.text}
    for item in items:
        author = name_of(item["actor"]) if names else ""
        text = None
        if comment := item["comment"]:
            text = wholes.get(comment["id"], comment["excerpt"])
        elif item["kind"] in CONVERSATION and item["post"]:
            post = fetch_one(_CONTENT_OF_POST, post=item["post"]["id"])
            text = post and post.text
        if text is not None:
            is_whole = texts == WHOLE and len(text) <= most
            found.append(
                _whole(text, author, f"{name}-{len(found)}")
                if is_whole
                else _beginning_of(text, author)
            )
        for plain in (item["excerpt"], item["reason"]):
            if plain:
                found.append(Quote(plain, ""))
    return found


def _whole(text: str, author: str, name: str) -> Quote:
    """Return a whole text. Images become links, and footnotes have the `name` in their ids."""
    base = _url("/")
    html = markdown.render(
        text, image_urls=(), member_url=f"{base}@", base=base, name=name, heading=3
    )
    return Quote(text, html.replace(f'href="{base}#', 'href="#'), author)


def _beginning_of(text: str, author: str = "") -> Quote:
    return Quote(excerpt(text[:BEGINNING_LENGTH]), "", author)
