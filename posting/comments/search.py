"""The search index of comments, which has none of the placeholders."""

from collections.abc import Collection

import sqlalchemy as sa

from posting.comments.models import Comment
from posting.posts.locks import select_for_update
from posting.posts.models import Post
from posting.search.index import Index


def _lock(ids: Collection[str]) -> sa.Select[str]:
    """Return the SELECT that locks the posts of comments, whose holder alone changes comments."""
    posts = sa.select(Comment.post_id).where(Comment.id.in_(ids))
    return select_for_update(Post.id.in_(posts))


INDEX = Index("comment", Comment, ["content"], _lock)
