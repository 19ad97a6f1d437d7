"""Webhooks, and what was delivered to them."""

from flask import current_app
from marshmallow import ValidationError, fields

from posting.accounts.fields import MAX_PASSWORD_LENGTH
from posting.accounts.schemas import Author
from posting.outbound import MAX_URL, is_url
from posting.web.errors import Message
from posting.web.schemas import (
    Identifier,
    Input,
    InputField,
    Items,
    Length,
    OneOf,
    Output,
    String,
    Timestamp,
    described,
    extensible,
    not_twice,
)
from posting.webhooks.models import CREATED, EVENTS

NOT_A_URL = Message("malformed", "Must be an https URL, or one that the operator allows.")
URL = "https://chat.example.net/posting"


def require_url(value: str) -> None:
    """Raise ValidationError for a text that is not a URL to which requests may go."""
    if not is_url(value, with_http=current_app.config["WEBHOOKS"] == "all"):
        raise ValidationError(NOT_A_URL)


class Events(InputField, fields.List[str]):
    """A list of events, none of them twice."""

    default_error_messages = {"invalid": Message("wrong_type", "Not a valid list.")}  # noqa: RUF012 - as marshmallow types it

    def __init__(self, text: str) -> None:
        super().__init__(
            String(validate=OneOf(EVENTS)),
            required=True,
            validate=[Items(1, len(EVENTS)), not_twice],
            metadata=described([EVENTS[0]], text) | {"uniqueItems": True},
        )


class WebhookInput(Input):
    """A new webhook."""

    url = String(
        required=True,
        validate=[Length(1, MAX_URL), require_url],
        metadata=described(URL, "An https URL, which gets a POST request for each event."),
    )
    events = Events("What is sent.")
    current_password = String(
        required=True,
        validate=Length(max=MAX_PASSWORD_LENGTH),
        metadata=described("a long walk by the sea"),
    )


class Webhook(Output):
    """A webhook, without its secret."""

    computed: tuple[str, ...] = ("events", "creator")

    id = Identifier()
    url = fields.String(metadata=described(URL))
    events = fields.List(
        fields.String(metadata=extensible(EVENTS, EVENTS[0])), metadata=described([EVENTS[0]])
    )
    creator = fields.Nested(
        Author,
        metadata={
            "description": "The owner who has created it. While this account is not an active "
            "owner, nothing is sent."
        },
    )
    created_at = Timestamp()
    failing_since = Timestamp(
        "Since when no request to it succeeds. Otherwise null.", allow_none=True
    )
    ended_at = Timestamp(
        "When it ended, because it answered 410, or failed for five days. Otherwise null.",
        allow_none=True,
    )


class NewWebhook(Webhook):
    """A new webhook, with its secret."""

    computed: tuple[str, ...] = ("events", "creator", "secret")

    secret = fields.String(
        metadata=described(
            "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
            "By which requests are signed, as Standard Webhooks describes it. It is not shown "
            "again.",
        )
    )


STATES = ("waiting", "delivered", "failed")


class Delivery(Output):
    """An event that is or was sent to a webhook."""

    computed: tuple[str, ...] = ("state",)

    id = Identifier("The `webhook-id` of the requests, which is the same for each attempt.")
    event = fields.String(metadata=extensible((*EVENTS, CREATED), EVENTS[0]))
    object_id = Identifier("What the event is about, such as a post.")
    state = fields.String(
        metadata=extensible(STATES, "delivered", "`failed`: it is not sent any more.")
    )
    created_at = Timestamp()
    delivered_at = Timestamp(allow_none=True)
    attempts = fields.Integer(metadata=described(1))
    status = fields.Integer(
        allow_none=True, metadata=described(204, "The status of the last response.")
    )
    error = fields.String(
        allow_none=True, metadata=described(None, "Why the last attempt failed. Otherwise null.")
    )
