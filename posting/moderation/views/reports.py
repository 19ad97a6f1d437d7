"""Reports: write, list, decide."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from werkzeug.exceptions import Conflict, Forbidden

from posting.accounts.current_user import (
    MODERATOR_REQUIRED,
    SIGNED_IN,
    current_user,
    current_user_id,
    lock_current_user,
)
from posting.accounts.models import PENDING
from posting.accounts.store import NoSuchUser, find_account_by_id
from posting.comments.store import NoSuchComment, get_comment_for_update
from posting.files.store import list_files_of_comments, list_files_of_posts
from posting.images.store import list_images_of_comments, list_images_of_posts
from posting.markdown import excerpt, shorten
from posting.moderation import log, schemas, store
from posting.moderation.models import COMMENT, POST, USER
from posting.moderation.store import AlreadyReported, NoSuchReport
from posting.posts.store import NoSuchPost, describe_post, get_post_for_update
from posting.web.endpoint import Blueprint, Reply
from posting.web.errors import Coded
from posting.web.etags import Condition
from posting.web.hosts import external_url
from posting.web.limits import Limit
from posting.web.schemas import Item

REPORT_LIMIT = Limit("reports", "LIMIT_REPORTS", current_user_id)

reports = Blueprint("reports", __name__, description="Reports of members to the moderators")

# What all endpoints that create a report declare.
_CREATES: Mapping[str, Any] = {
    "access": SIGNED_IN,
    "limits": [REPORT_LIMIT],
    "body": schemas.ReportInput(),
    "idempotent": True,
    "status": 201,
    "returns": schemas.Report(),
    "headers": ["Location"],
}


class ReportOnYourself(Coded, Forbidden):
    error_code = "report_on_yourself"
    description = "This report is about you or what you wrote. Another moderator decides on it."


class ReportClosed(Coded, Conflict):
    error_code = "report_closed"
    description = "This report is closed already."


@reports.post("/posts/<nanoid:id>/reports", errors=[NoSuchPost, AlreadyReported], **_CREATES)
def report_post(id: str, body: dict[str, str]) -> Reply:
    """Report a post to the moderators."""
    lock_current_user(exclusively=True)
    post = get_post_for_update(id)
    report_id = store.insert_report(
        current_user.id,
        POST,
        id,
        post_id=id,
        author_id=post.author_id,
        excerpt=describe_post(post),
        updated_at=post.updated_at,
        reason=body["reason"],
    )
    return _created(report_id)


@reports.post("/comments/<nanoid:id>/reports", errors=[NoSuchComment, AlreadyReported], **_CREATES)
def report_comment(id: str, body: dict[str, str]) -> Reply:
    """Report a comment to the moderators."""
    lock_current_user(exclusively=True)
    comment = get_comment_for_update(id)
    report_id = store.insert_report(
        current_user.id,
        COMMENT,
        id,
        post_id=comment.post_id,
        author_id=comment.author_id,
        excerpt=excerpt(comment.content),
        updated_at=comment.updated_at,
        reason=body["reason"],
    )
    return _created(report_id)


@reports.post('/users/<nanoid("me"):id>/reports', errors=[NoSuchUser, AlreadyReported], **_CREATES)
def report_user(id: str, body: dict[str, str]) -> Reply:
    """Report a member to the moderators, such as for a name or a bio."""
    lock_current_user(exclusively=True)
    user = find_account_by_id(id)
    if user is None or user.state == PENDING:
        raise NoSuchUser
    texts = (user.username, user.display_name, " ".join((user.bio or "").split()))
    report_id = store.insert_report(
        current_user.id,
        USER,
        id,
        post_id=None,
        author_id=id,
        excerpt=shorten(" · ".join(filter(None, texts))),
        updated_at=datetime.fromisoformat(user.updated_at),
        reason=body["reason"],
    )
    return _created(report_id)


def _created(id: str) -> tuple[Item, dict[str, str]]:
    """Return a new report, and its URL as a header."""
    [report] = _as_read(store.get_report(id))
    return report, {"Location": external_url("reports.get_report", id=id)}


@reports.get(
    "/reports",
    access=MODERATOR_REQUIRED,
    query=schemas.ReportsQuery(),
    returns=schemas.Report(many=True),
    headers=["Link"],
)
def list_reports(query: dict[str, Any]) -> Reply:
    """List the reports that are open, oldest first, or those that are closed."""
    page = store.list_reports(query["state"], limit=query["limit"], cursor=query.get("cursor"))
    return _as_read(*page.items), page.headers


@reports.get(
    "/reports/<nanoid:id>", access=SIGNED_IN, returns=schemas.Report(), errors=[NoSuchReport]
)
def get_report(id: str) -> Reply:
    """Read one of your reports; as a moderator, any."""
    report = store.get_report(id)
    reporter = report["reporter"]
    if not (current_user.is_moderator or (reporter and reporter["id"] == current_user.id)):
        raise NoSuchReport
    return _as_read(report)[0]


@reports.patch(
    "/reports/<nanoid:id>",
    access=MODERATOR_REQUIRED,
    body=schemas.ReportDecision(),
    conditional=True,
    returns=schemas.Report(),
    errors=[NoSuchReport, ReportOnYourself, ReportClosed],
)
def close_report(id: str, body: dict[str, str | None], condition: Condition) -> Reply:
    """Close a report with an outcome. The reporter gets a notification.

    Only if you are the only moderator, you can close a report about you or what you wrote.
    """
    report = store.get_report(id)
    if _is_on_reader(report) and store.has_other_moderator(current_user.id):
        raise ReportOnYourself
    condition.require_body(_as_read(report)[0])
    outcome, note = str(body["outcome"]), body.get("note")
    is_closed = store.close_report(id, outcome, note=note, closer_id=current_user.id)
    if not is_closed:
        raise ReportClosed
    author = report["target"]["author"]
    log.record_act("closed", "report", id, author and author["id"], note)
    return _as_read(store.get_report(id))[0]


def _is_on_reader(report: Item) -> bool:
    """Return whether a report is about the current user, or what this user has written."""
    author = report["target"]["author"]
    return bool(author and author["id"] == current_user.id)


def _as_read(*reports: Item) -> list[Item]:
    """Return reports with the images and files of their targets, without what is a secret.

    Members do not see who closed them, and moderators do not see who reported them.
    """
    targets: dict[str, list[Item]] = {POST: [], COMMENT: [], USER: []}
    for report in reports:
        targets[report["target"]["kind"]].append(report["target"])
    posts = [target["id"] for target in targets[POST]]
    comments = [target["id"] for target in targets[COMMENT]]
    images = list_images_of_posts(posts) | list_images_of_comments(comments)
    files = list_files_of_posts(posts) | list_files_of_comments(comments)
    read = []
    for report in reports:
        target = report["target"]
        shown = {"images": images.get(target["id"], []), "files": files.get(target["id"], [])}
        read.append(_without_secrets(report) | {"target": target | shown})
    return read


def _without_secrets(report: Item) -> Item:
    if not current_user.is_moderator:
        return report | {"closed_by": None}
    return report | {"reporter": None} if _is_on_reader(report) else report
