"""The search index of posts."""

from posting.posts.locks import select_for_update
from posting.posts.models import Post
from posting.search.index import Index

INDEX = Index(
    "post", Post, ["title", "content"], lock=lambda ids: select_for_update(Post.id.in_(ids))
)
