"""Listeners that record a change within the transaction of an event."""

from posting.accounts.events import AccountDeleted, AccountEdited
from posting.changes.models import COMMENT, CREATED, DELETED, EDITED, IMAGE, POST, USER
from posting.changes.store import record, record_all, record_deletion_of_posts
from posting.comments.events import (
    CommentCreated,
    CommentEdited,
    CommentsAnonymized,
    CommentsDeleted,
    CommentsEmptied,
)
from posting.db.events import Listeners
from posting.images.events import ImageAdded, ImageDeleted, ImageDescribed
from posting.posts.events import PostCreated, PostEdited, PostMarked, PostsAnonymized, PostsDeleted

LISTENERS: Listeners = (
    (PostCreated, lambda event: record(POST, event.id, event.id, CREATED)),
    (PostEdited, lambda event: record(POST, event.id, event.id, EDITED)),
    (PostMarked, lambda event: record(POST, event.id, event.id, EDITED)),
    (PostsAnonymized, lambda event: record_all(POST, {id: id for id in event.ids}, EDITED)),
    (PostsDeleted, lambda event: record_deletion_of_posts([*event.ids])),
    (CommentCreated, lambda event: record(COMMENT, event.id, event.post_id, CREATED)),
    (CommentEdited, lambda event: record(COMMENT, event.id, event.post_id, EDITED)),
    (CommentsAnonymized, lambda event: record_all(COMMENT, event.post_ids, EDITED)),
    (CommentsEmptied, lambda event: record_all(COMMENT, event.post_ids, EDITED)),
    (CommentsDeleted, lambda event: record_all(COMMENT, event.post_ids, DELETED)),
    (ImageAdded, lambda event: record(IMAGE, event.id, event.post_id, CREATED)),
    (ImageDescribed, lambda event: record(IMAGE, event.id, event.post_id, EDITED)),
    (ImageDeleted, lambda event: record(IMAGE, event.id, event.post_id, DELETED)),
    (AccountEdited, lambda event: record(USER, event.id, None, EDITED)),
    (AccountDeleted, lambda event: record(USER, event.id, None, DELETED)),
)
