"""The search indexes of all features, which the operators' commands maintain."""

from posting.accounts import names
from posting.comments import store as comments
from posting.posts import store as posts
from posting.search.index import Index

INDEXES: tuple[Index | names.NameIndex, ...] = (posts.INDEX, comments.INDEX, names.INDEX)
