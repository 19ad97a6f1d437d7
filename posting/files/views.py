"""Files of posts and comments: send, download, delete."""

from typing import Any
from urllib.parse import quote

from flask import Response
from werkzeug.http import dump_options_header

from posting.accounts.current_user import (
    READERS,
    SIGNED_IN,
    NotAuthor,
    current_user_id,
    lock_current_user,
    may_delete,
)
from posting.accounts.schemas import RemovalQuery
from posting.attachments import QuotaExceeded, purge_unattached, require_space
from posting.files import schemas, store
from posting.files.formats import FileError, check_file, clean_name, media_type_of
from posting.files.models import File
from posting.files.store import NoSuchFile
from posting.images.views import IMAGE_POLICY, headers_of_file, readers
from posting.markdown import shorten
from posting.moderation import log
from posting.web.endpoint import SHARED, Blueprint, Reply
from posting.web.errors import InvalidInput, Message
from posting.web.etags import Condition, etag_of, if_none_match
from posting.web.hosts import external_url
from posting.web.limits import Limit

FILE_LIMIT = Limit("files", "LIMIT_FILES", current_user_id)
UNUSABLE_FILE = Message("unusable_file", "{}")
BYTES = {"type": "string", "format": "binary"}

files = Blueprint("files", __name__, description="Files of posts and comments")


class FileDeletionForbidden(NotAuthor):
    description = "Only the author of the post or comment or a moderator may delete its files."


def prepare_file(form: dict[str, Any]) -> str:
    """Return the name under which the file of a form is stored, if it is one that is taken."""
    name = clean_name(form["file"].name)
    try:
        check_file(name, form["file"].data)
    except FileError as error:
        raise InvalidInput.at("/file", UNUSABLE_FILE.format(error)) from None
    return name


@files.post(
    "/files",
    access=SIGNED_IN,
    limits=[FILE_LIMIT],
    form=schemas.FileUpload(),
    prepare=prepare_file,
    idempotent=True,
    status=201,
    returns=schemas.File(),
    headers=["Location"],
    errors=[QuotaExceeded],
)
def create_file(form: dict[str, Any], prepared: str) -> Reply:
    """Send a file before the post or comment that will have it.

    Then name its ID in `files` of the post or comment. Until then, only you can read it, by
    `GET /users/me/files/{id}`, and its `url` responds with 404. After a day it is deleted. You can
    have 40 such files. A file must begin as its extension says, and is stored as it is.
    """
    data, owner_id = form["file"].data, current_user_id()
    lock_current_user(exclusively=True)  # so that two of their files do not exceed the quota
    purge_unattached(owner_id)
    require_space(File, owner_id, len(data))
    file = store.insert_file(owner_id, prepared, data)
    url = external_url("files.get_unattached_file", id=file["id"])
    return file, {"Location": url, "ETag": f'"{file["id"]}"'}


@files.get("/users/me/files", access=SIGNED_IN, returns=schemas.File(many=True))
def list_unattached_files() -> Reply:
    """List your files that no post or comment has yet, 40 at most."""
    return store.list_unattached_files(current_user_id())


@files.get(
    "/users/me/files/<nanoid:id>",
    access=SIGNED_IN,
    returns=BYTES,
    media_type="*/*",
    headers=["Content-Disposition"],
    errors=[NoSuchFile],
)
def get_unattached_file(id: str) -> Reply:
    """Download a file of yours that no post or comment has yet."""
    file = store.get_unattached_data(id, current_user_id())
    headers = {"ETag": f'"{id}"', "Content-Security-Policy": IMAGE_POLICY}
    return _download(file.name, file.data, headers)


@files.delete(
    "/users/me/files/<nanoid:id>",
    access=SIGNED_IN,
    conditional=True,
    status=204,
    errors=[NoSuchFile],
)
def delete_unattached_file(id: str, condition: Condition) -> Reply:
    """Delete a file of yours, unless a post or comment has it."""
    file = store.lock_unattached_file(id, current_user_id())
    condition.require(id)
    store.delete_file(file)
    return None


@files.get(
    "/files/<nanoid:id>/<name>",
    access=READERS,
    cache=SHARED,
    returns=BYTES,
    media_type="*/*",
    headers=["Content-Disposition"],
    errors=[NoSuchFile],
)
def get_file(id: str, name: str) -> Reply:
    """Download a file. It never changes, so it can be cached forever."""
    return send_download(id, name, **readers())


def send_download(id: str, name: str, *, is_public: bool, shown_on: str) -> Response:
    """Return the response with the bytes of a file. Raise NoSuchFile.

    `shown_on` is as for `send_image`: a feed reader may play the file of a podcast.
    """
    file = store.get_data(id, name, without_data=if_none_match(id))
    headers = headers_of_file(id, is_public=is_public, shown_on=shown_on)
    return _download(name, getattr(file, "data", b""), headers)


def _download(name: str, data: bytes, headers: dict[str, str]) -> Response:
    """Return the response with a file that browsers save and never show."""
    # RFC 6266: what does not know `filename*` takes the name from the end of the URL.
    encoded = {"filename*": f"UTF-8''{quote(name, safe='')}"}
    headers |= {"Content-Disposition": dump_options_header("attachment", encoded)}
    return Response(data, headers=headers, content_type=media_type_of(name))


@files.get(
    "/files/<nanoid:id>", access=READERS, cache=SHARED, returns=schemas.File(), errors=[NoSuchFile]
)
def get_file_metadata(id: str) -> Reply:
    """Read the metadata of a file."""
    return store.get_file(id)


@files.delete(
    "/files/<nanoid:id>",
    access=SIGNED_IN,
    query=RemovalQuery(),
    conditional=True,
    status=204,
    errors=[FileDeletionForbidden, NoSuchFile],
)
def delete_file(id: str, query: dict[str, str], condition: Condition) -> Reply:
    """Delete your own file, or any file of a post or comment as a moderator."""
    file = store.get_file_for_update(id, current_user_id())
    if not may_delete(file.author_id):
        raise FileDeletionForbidden
    etag = etag_of(store.get_file(id, owner_id=current_user_id()))
    condition.require(etag, id)
    name, reason = shorten(file.name), query.get("reason")
    log.record_removal(
        "file", id, file.author_id, excerpt=name, reason=reason, post_id=file.post_id
    )
    store.delete_file(file)
    return None
