"""The SQL of files: their metadata and bytes. What they share with images is in `attachments`."""

from collections.abc import Collection, Iterable, Sequence

import sqlalchemy as sa

from posting import attachments
from posting.changes import store as changes
from posting.db.purge import purge_expired
from posting.db.transactions import Row, execute, fetch_all, fetch_one, fetch_value
from posting.db.types import now
from posting.files import schemas
from posting.files.formats import media_type_of
from posting.files.models import File, FileData
from posting.web.errors import NoSuch
from posting.web.hosts import external_url
from posting.web.schemas import Item, columns, insert, select, to_item, to_items

MAX_PURGED = 5  # expired files with each new one, since each may have megabytes


class NoSuchFile(NoSuch, thing="file"):
    pass


_EXISTS, _IS_FREE = attachments.is_shown(File), attachments.is_free(File)
_IS_IT = File.id == sa.bindparam("id")
_FILES = select(schemas.File, File).order_by(File.position, File.created_at, File.id)
_FILE = _FILES.where(_IS_IT, sa.or_(_EXISTS, _IS_FREE))
_FREE = _FILES.where(_IS_FREE)
_OF_POSTS = _FILES.where(
    _EXISTS, File.post_id.in_(sa.bindparam("posts", expanding=True)), File.comment_id.is_(None)
)
_OF_COMMENTS = _FILES.where(_EXISTS, File.comment_id.in_(sa.bindparam("comments", expanding=True)))
_NAME = sa.select(File.name).where(_IS_IT, _EXISTS)
_DATA = sa.select(File.name, FileData.data).join_from(File, FileData, FileData.file_id == File.id)
_SHOWN_DATA = _DATA.where(_IS_IT, _EXISTS)
_FREE_DATA = _DATA.where(_IS_IT, _IS_FREE)
_INSERT = insert(schemas.File, File)


def get_file(id: str, owner_id: str | None = None) -> Item:
    """Return a file as it is sent, without its bytes. Raise NoSuchFile.

    With `owner_id`, it may be a file of this user that no text has yet.
    """
    return _as_sent(to_item(_found(fetch_one(_FILE, id=id, owner=owner_id))))


def get_data(id: str, name: str, *, without_data: bool) -> Row:
    """Return the name of a file that a text has and, unless `without_data`, its bytes.

    Raise NoSuchFile. A file with another name is not found, so that each file has one URL.
    """
    row = _found(fetch_one(_NAME if without_data else _SHOWN_DATA, id=id))
    return _found(row if row.name == name else None)


def get_unattached_data(id: str, owner_id: str) -> Row:
    """Return the name and bytes of a file that no text has yet. Raise NoSuchFile."""
    return _found(fetch_one(_FREE_DATA, id=id, owner=owner_id))


def get_file_for_update(id: str, user_id: str) -> Row:
    """Lock a file for a user, and return it with `author_id`. Raise NoSuchFile."""
    found = attachments.get_for_update(File, columns(schemas.File, File), id, user_id)
    return _found(found)


def lock_unattached_file(id: str, user_id: str) -> Row:
    """Lock a file of a user that no text has, and return it. Raise NoSuchFile."""
    return _found(attachments.lock_unattached(File, columns(schemas.File, File), id, user_id))


def _found(row: Row | None) -> Row:
    if row is None:
        raise NoSuchFile
    return row


def list_unattached_files(owner_id: str) -> list[Item]:
    """Return the files of a user that no text has yet, as they are sent, in their order."""
    return [_as_sent(file) for file in to_items(fetch_all(_FREE, owner=owner_id))]


def list_files_of_posts(ids: Sequence[str]) -> dict[str, list[Item]]:
    """Return the files of posts as they are sent, in their order, by the id of their post."""
    rows = fetch_all(_OF_POSTS, posts=list(ids)) if ids else ()
    return _group(rows, "post_id", ids)


def list_files_of_comments(ids: Sequence[str]) -> dict[str, list[Item]]:
    """Return the files of comments as they are sent, in order, by the id of their comment."""
    rows = fetch_all(_OF_COMMENTS, comments=list(ids)) if ids else ()
    return _group(rows, "comment_id", ids)


def add_files_to_comments(comments: Iterable[Item]) -> None:
    """Replace `file_count` of comments by their files as they are sent."""
    comments = list(comments)
    found = list_files_of_comments([each["id"] for each in comments if each.pop("file_count")])
    for comment in comments:
        comment["files"] = found.get(comment["id"], [])


def _group(rows: Sequence[Row], name: str, ids: Sequence[str]) -> dict[str, list[Item]]:
    files: dict[str, list[Item]] = {id: [] for id in ids}
    for file in to_items(rows):
        files[file[name]].append(_as_sent(file))
    return files


def _as_sent(file: Item) -> Item:
    """Return a file with its URL and media type."""
    id, name = file["id"], file["name"]
    url = external_url("files.get_file", id=id, name=name)
    return {"id": id, "url": url} | file | {"media_type": media_type_of(name)}


def count_files_by(author_id: str) -> int:
    """Return how many files the posts and comments of a user have."""
    of_author = sa.select(sa.func.count()).where(File.owner_id == author_id, _EXISTS)
    count: int = fetch_value(of_author)
    return count


def insert_file(owner_id: str, name: str, data: bytes) -> Item:
    """Add a file that no text has yet, and return it as it is sent."""
    inserted = execute(
        _INSERT,
        post_id=None,
        comment_id=None,
        owner_id=owner_id,
        name=name,
        size=len(data),
        unattached_since=now(),
    )
    file = to_item(inserted.one())
    execute(sa.insert(FileData), file_id=file["id"], data=data)
    purge_expired(File, most=MAX_PURGED)
    return _as_sent(file)


def set_files(
    ids: Sequence[str], owner_id: str, *, post_id: str, comment_id: str | None = None
) -> bool:
    """Give files to a locked post, or to a comment on it. Return whether this changes anything.

    See `attachments.attach`.
    """
    attached = attachments.attach(File, ids, owner_id, post_id=post_id, comment_id=comment_id)
    return attached is not None


def delete_file(file: Row) -> None:
    """Delete a locked file. For clients that follow the changes, its text is edited."""
    execute(sa.delete(File).where(File.id == file.id))
    if file.post_id:
        attachments.count(File, file.post_id, file.comment_id)
        if file.comment_id:
            changes.record_change("comment", file.comment_id, file.post_id, "edited")
        else:
            changes.record_change("post", file.post_id, file.post_id, "edited")


def delete_files_of_comments(ids: Collection[str]) -> None:
    """Delete the files of comments on locked posts."""
    rows = attachments.delete_of_comments(File, ids)
    if edited := {row.comment_id: row.post_id for row in rows}:
        changes.record_changes("comment", edited, "edited")
