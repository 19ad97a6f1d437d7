"""Mail addresses, and what members choose to be sent."""

from typing import Any

from marshmallow import ValidationError, fields

from posting.accounts.fields import MAX_PASSWORD_LENGTH
from posting.languages import LANGUAGES
from posting.mail.models import BEGINNING, DAILY, MAX_ADDRESS, RHYTHMS, TEXTS
from posting.mail.mornings import time_zones
from posting.smtp import ADDRESS
from posting.web.errors import Message
from posting.web.schemas import (
    Boolean,
    Input,
    Length,
    OneOf,
    Output,
    String,
    Timestamp,
    described,
    extensible,
)

EXAMPLE_CODE = "V1StGXR8_Z5jdHi6B-myT3cqSJzQ3uvEdY5oAjSkK_Jri0qmfyaLOFT6n3zC6zxs"
NOT_AN_ADDRESS = Message("malformed", "Must be an address such as ada@example.org.")
NOT_A_TIME_ZONE = Message("not_a_choice", "Must be a time zone such as Europe/Berlin.")


class MailAddress(String):
    """The field of a mail address, which becomes lower case: no mail server tells them apart."""

    def __init__(self, text: str, **options: Any) -> None:
        metadata = described("ada@example.org", text) | {"format": "email"}
        super().__init__(validate=Length(3, MAX_ADDRESS), metadata=metadata, **options)

    def _deserialize(self, value: Any, *args: Any, **kwargs: Any) -> Any:
        text: str = super()._deserialize(value, *args, **kwargs)
        if not ADDRESS.fullmatch(text):
            raise ValidationError(NOT_AN_ADDRESS)
        return text.lower()


def require_time_zone(value: str) -> None:
    """Raise ValidationError for a text that is not the name of a time zone."""
    if value not in time_zones():
        raise ValidationError(NOT_A_TIME_ZONE)


class EmailInput(Input):
    """A new address, with the current password."""

    email = MailAddress("Letters beyond ASCII are not accepted.", required=True)
    current_password = String(
        required=True,
        validate=Length(max=MAX_PASSWORD_LENGTH),
        metadata=described("a long walk by the sea"),
    )


class Email(Output):
    """The mail address of an account, which only its owner sees."""

    email = fields.String(
        allow_none=True, metadata=described("ada@example.org", "Null if no address is confirmed.")
    )
    pending = fields.String(
        allow_none=True, metadata=described(None, "An address that is not confirmed yet.")
    )
    failing_since = Timestamp(
        "Since when no notifications and letters are sent to the address, because mail servers "
        "refuse it. Otherwise null.",
        allow_none=True,
    )


class ConfirmationInput(Input):
    """The code of a link that confirms an address."""

    code = String(
        required=True,
        validate=Length(max=256),
        metadata=described(EXAMPLE_CODE, "The part of the link's URL after `#`."),
    )


class ConfirmedEmail(Output):
    """An address that is confirmed."""

    email = fields.String(metadata=described("ada@example.org"))


class LinkRequest(Input):
    """The account whose password is forgotten."""

    name = String(
        required=True,
        validate=Length(1, 256),
        metadata=described("ada", "A username or a mail address."),
    )


class SettingsInput(Input):
    """A change to what is sent to a member."""

    mail = String(
        validate=OneOf(RHYTHMS),
        metadata=described(
            DAILY,
            "When you get mails about unread notifications. `each`: one mail for each, at once. "
            "`daily` and `weekly`: one mail about all of them, at eight in the morning. `none`: no "
            "mails.",
        ),
    )
    text = String(
        validate=OneOf(TEXTS),
        metadata=described(
            BEGINNING,
            "How much of what others have written is in a mail: the `whole` text, its `beginning`, "
            "or only a `link`.",
        ),
    )
    letter = Boolean(
        metadata=described(False, "Whether you get a letter on Mondays: the best of the week.")
    )
    push = Boolean(metadata=described(True, "Whether your devices show notifications by web push."))
    time_zone = String(
        validate=[Length(1, 64), require_time_zone],
        metadata=described("Europe/Berlin", "Where it is eight o'clock when mails are sent."),
    )
    language = String(
        allow_none=True,
        validate=OneOf(LANGUAGES),
        metadata=described("de", "The language of mails and pushes. Null for that of the site."),
    )


class Settings(Output):
    """The choices of a member about mails. They have no effect without a confirmed address."""

    mail = fields.String(metadata=extensible(RHYTHMS, DAILY))
    text = fields.String(metadata=extensible(TEXTS, BEGINNING))
    letter = fields.Boolean(metadata=described(False))
    push = fields.Boolean(metadata=described(True))
    time_zone = fields.String(metadata=described("Europe/Berlin"))
    language = fields.String(allow_none=True, metadata=extensible(tuple(LANGUAGES), "de"))
