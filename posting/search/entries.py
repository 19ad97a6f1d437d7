"""Rows as a search index has them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

RowData = Mapping[Any, Any]  # the columns of a row


@dataclass(frozen=True)
class RowWords:
    """The words of each text of a row, which are split before a transaction begins."""

    texts: tuple[str, ...]
    words: tuple[list[str], ...]


Entry = tuple[RowData, RowWords]
