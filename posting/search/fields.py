"""The field of the words to search for."""

from marshmallow import ValidationError

from posting.search.words import MIN_PREFIX_LENGTH, has_short_prefix
from posting.web.errors import Message
from posting.web.schemas import Length, Parameter, described, not_blank

MAX_QUERY_LENGTH = 200
SHORT_PREFIX = Message(
    "too_short", f"Must have at least {MIN_PREFIX_LENGTH} characters before each *."
)


def no_short_prefix(query: str) -> None:
    if has_short_prefix(query):
        raise ValidationError(SHORT_PREFIX)


def words_field(texts: str) -> Parameter:
    """Return the field of the words to search for in some texts, such as the content."""
    return Parameter(
        validate=[Length(1, MAX_QUERY_LENGTH), not_blank, no_short_prefix],
        metadata=described(
            'engines "on looms" weav*',
            f"Words of the {texts}, in any order. Phrases are in quotes, and `*` follows the "
            "beginning of a word, which has at least two characters.",
        ),
    )
