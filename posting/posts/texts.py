"""Mentions, words and images, found in a text before the transaction that writes it begins."""

from dataclasses import dataclass

from posting.accounts.mentions import find_mentions
from posting.db.transactions import Row
from posting.markdown import excerpt, shorten
from posting.search.entries import RowData, RowWords
from posting.search.index import Index


@dataclass(frozen=True)
class PreparedText:
    """The words of a row, and the names of whom its content mentions and did not before."""

    words: RowWords
    mentions: frozenset[str]


def describe_post(post: Row) -> str:
    """Return the title of a post and the beginning of its text, in one line."""
    return shorten(f"{post.title}: {excerpt(post.content)}")


def prepare_text(index: Index, row: RowData, *, former: str | None = None) -> PreparedText:
    """Return what is found in a row whose `content` was `former`. It may take 0.2 seconds.

    So call this before the transaction begins.
    """
    content = row["content"] or ""
    mentions: frozenset[str] = frozenset()
    if content != former:
        mentions = find_mentions(content) - find_mentions(former or "")
    return PreparedText(index.split(row), mentions)
