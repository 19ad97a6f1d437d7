"""The list of changes, for apps that keep a copy of the content and of its authors."""

from typing import Any

from posting.accounts.current_user import READERS
from posting.changes import schemas, store
from posting.changes.store import CursorExpired
from posting.web.endpoint import SHARED, Blueprint, Reply

changes = Blueprint("changes", __name__, description="What was created, edited and deleted")


@changes.get(
    "/changes",
    access=READERS,
    cache=SHARED,
    query=schemas.ChangesQuery(),
    returns=schemas.Changes(),
    errors=[CursorExpired],
)
def list_changes(query: dict[str, Any]) -> Reply:
    """List what was created, edited or deleted after a cursor, in the order of the commits.

    To keep a copy of the content, take a cursor, read everything, and then follow the changes. Read
    an object that was created or edited again: a response of 404 means that it was deleted since.
    """
    items, cursor = store.list_changes(query.get("after"), query["limit"])
    return {"changes": items, "cursor": cursor}
