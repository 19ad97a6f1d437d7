"""Base classes of schemas, and the schemas that several resources share."""

from marshmallow import EXCLUDE, RAISE, Schema, fields

from posting.web.fields import Digits, Length, Parameter, Range, described
from posting.web.messages import UNKNOWN, Message


class Input(Schema):
    """A body or query, in which an unknown name is an error."""

    class Meta:
        unknown = RAISE

    error_messages = {  # noqa: RUF012 - as marshmallow types it
        "type": Message("wrong_type", "Invalid input type."),
        "unknown": UNKNOWN,
    }


class Output(Schema):
    """A response. Every field is always present, except those in `optional`.

    A schema documents a response, and tests check responses against it. It is not run for each
    response: the queries of `posting.web.rows` return data as it is sent, because dumping a row
    would take longer than reading it.
    """

    class Meta:
        unknown = EXCLUDE  # later versions may add fields

    optional: tuple[str, ...] = ()  # fields that not every response has
    computed: tuple[str, ...] = ()  # fields that are not columns of the model

    def on_bind_field(self, field_name: str, field_obj: fields.Field[object]) -> None:
        field_obj.required = field_name not in self.optional


MAX_PAGE_SIZE = 100


def page_size(default: int) -> Digits:
    """Return the field of the number of items on a page."""
    return Digits(
        load_default=default,
        validate=Range(1, MAX_PAGE_SIZE),
        metadata=described(default, "The number of items on a page."),
    )


class PageQuery(Input):
    """A page of a list."""

    limit = page_size(20)
    cursor = Parameter(
        validate=Length(max=512),
        metadata={"description": "Where the page begins, from the Link header of the page before."},
    )


class Health(Output):
    """The state of the service."""

    status = fields.String(metadata=described("ok"))
