"""What schemas share: their base classes, authors and pages."""

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any

from marshmallow import EXCLUDE, RAISE, Schema, fields
from marshmallow.validate import Length, Range

from posting.schemas.fields import Digits, Identifier, Moment, described


class Input(Schema):
    """A body or query in which an unknown name is an error."""

    class Meta:
        unknown = RAISE


AS_SENT = (fields.String, fields.Integer, fields.Boolean, Moment)


class Output(Schema):
    """A body that always has all of its fields.

    Rows come as plain dicts, their moments as they are sent, and are dumped by what the fields say,
    without asking each of them again for each row.
    """

    class Meta:
        unknown = EXCLUDE  # the document lets a response gain fields

    def on_bind_field(self, field_name: str, field_obj: fields.Field[Any]) -> None:
        field_obj.required = True

    def dump(self, obj: Any, *, many: bool | None = None) -> Any:
        several = self.many if many is None else many
        if several:
            return [self.plain(each) for each in obj]
        return self.plain(obj) if isinstance(obj, dict) else super().dump(obj, many=False)

    def plain(self, row: dict[str, Any]) -> dict[str, Any]:
        """Return one plain dict as the fields dump it."""
        dumped = {name: row[source] for name, source in self._sources}
        for name, write in self._writers:
            dumped[name] = write(dumped[name])
        return dumped

    @cached_property
    def _sources(self) -> list[tuple[str, str]]:
        return [
            (field.data_key or name, field.attribute or name)
            for name, field in self.dump_fields.items()
        ]

    @cached_property
    def _writers(self) -> list[tuple[str, Callable[[Any], Any]]]:
        writers = (
            (field.data_key or name, _writer(field)) for name, field in self.dump_fields.items()
        )
        return [(name, write) for name, write in writers if write]


def _writer(field: fields.Field[Any]) -> Callable[[Any], Any] | None:
    """Return what turns a row's value of a field into JSON; None where it is the same."""
    if isinstance(field, fields.Nested) and isinstance(field.schema, Output):
        plain = field.schema.plain
        if field.many:
            return lambda rows: [plain(row) for row in rows]
        return lambda row: None if row is None else plain(row)
    return None if isinstance(field, AS_SENT) else partial(_by_field, field)


def _by_field(field: fields.Field[Any], value: Any) -> Any:
    return field._serialize(value, None, None)


class Author(Output):
    """Who wrote something, in short."""

    id = Identifier()
    username = fields.String(metadata=described("ada"))
    display_name = fields.String(allow_none=True, metadata=described("Ada Lovelace"))


def limit(default: int) -> Digits:
    """Return the field that says how many rows a page holds."""
    return Digits(
        load_default=default,
        validate=Range(1, 100),
        metadata=described(default, "How many rows a page holds."),
    )


class PageQuery(Input):
    """Which page of a list."""

    limit = limit(20)
    cursor = fields.String(
        validate=Length(max=512),
        metadata={"description": "Where the page begins: the Link header of the one before says."},
    )


class Health(Output):
    """That all is well."""

    status = fields.String(required=True, metadata=described("ok"))
