"""Devices that get notifications by web push, as browsers describe them."""

from marshmallow import ValidationError, fields
from marshmallow.validate import Regexp

from posting.outbound import MAX_URL, is_url
from posting.web.errors import Message
from posting.web.schemas import Input, InputField, Length, Output, Parameter, String, described

NOT_A_URL = Message("malformed", "Must be an https URL.")
NOT_A_KEY = Message("malformed", "Must be a key as browsers give it, in base64url.")
ENDPOINT = "https://push.example.net/send/3cqSJzQ3uvEdY5oAjSkK"


def require_https_url(value: str) -> None:
    """Raise ValidationError for a text that is not an https URL."""
    if not is_url(value):
        raise ValidationError(NOT_A_URL)


def key_field(length: int, first: str, example: str) -> String:
    """Return the field of a key, which has a length in base64url and begins with some letters."""
    pattern = rf"{first}[A-Za-z0-9_-]{{{length - len(first)}}}"
    return String(
        required=True,
        validate=Regexp(rf"{pattern}\Z", error=NOT_A_KEY),
        pattern=f"^{pattern}$",
        metadata=described(example),
    )


class Keys(Input):
    """The keys of a browser, by which pushes are encrypted (RFC 8291)."""

    p256dh = key_field(87, "B", "B" + "A" * 86)  # a point that is not compressed
    auth = key_field(22, "", "A" * 22)


class NestedInput(InputField, fields.Nested):
    """An object within a body."""


class DeviceInput(Input):
    """A device, as `PushSubscription.toJSON()` of a browser returns it."""

    endpoint = String(
        required=True,
        validate=[Length(1, MAX_URL), require_https_url],
        metadata=described(ENDPOINT, "The URL of the push service, for this device."),
    )
    keys = NestedInput(Keys, required=True)
    expirationTime = fields.Raw(  # noqa: N815 - the name that browsers use
        allow_none=True, load_only=True, metadata=described(None, "Ignored.")
    )


class DeviceQuery(Input):
    """The device to forget, or all devices of a member."""

    endpoint = Parameter(
        validate=Length(1, MAX_URL), metadata=described(ENDPOINT, "Its URL. Without it, all end.")
    )


class PushKey(Output):
    """The public key of the service."""

    key = fields.String(
        metadata=described("B" + "A" * 86, "The `applicationServerKey` of a subscription.")
    )
