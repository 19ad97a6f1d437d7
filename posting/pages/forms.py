"""Attributes of form controls, from the marshmallow schemas, so that there is one set of rules.

The script checks them. A browser would cut a text that is too long, without a word.
"""

from typing import Any

from flask import current_app
from marshmallow.validate import Length, Range, Regexp

from posting.accounts.fields import NewPassword
from posting.accounts.schemas import (
    Credentials,
    PasswordReset,
    ProfileChange,
    RecoveryCodesInput,
    RemovalQuery,
    ResetLinkInput,
    RoleInput,
    SessionConfirmation,
    SignUp,
    TokenInput,
)
from posting.comments.schemas import CommentInput
from posting.images.schemas import MEDIA_TYPES, ImageUpload
from posting.invitations.schemas import InvitationInput
from posting.mail.schemas import EmailInput, LinkRequest
from posting.moderation.schemas import (
    AccountRemovalQuery,
    RemovalInput,
    ReportDecision,
    ReportInput,
    SuspensionInput,
)
from posting.posts.schemas import PostInput
from posting.site.schemas import SiteInput
from posting.topics.schemas import TopicInput
from posting.webhooks.schemas import WebhookInput

SCHEMAS = {
    "sign-up": SignUp(),
    "sign-in": Credentials(),
    "reset-by-link": PasswordReset(),
    "reset-by-code": PasswordReset(),
    "profile": ProfileChange(),
    "post": PostInput(),
    "comment": CommentInput(),
    "image": ImageUpload(),
    "token": TokenInput(),
    "recovery-codes": RecoveryCodesInput(),
    "email": EmailInput(),
    "ask-for-link": LinkRequest(),
    "invitation": InvitationInput(),
    "report": ReportInput(),
    "dismissal": ReportDecision(),
    "deletion": RemovalQuery(),
    "role": RoleInput(),
    "reset-link": ResetLinkInput(),
    "site": SiteInput(),
    "topic": TopicInput(),
    "topic-change": TopicInput(),
    "backup": SessionConfirmation(),
    "webhook": WebhookInput(),
    "suspension": SuspensionInput(),
    "removal": RemovalInput(),
    "account-deletion": AccountRemovalQuery(),
}


def attributes(form: str, name: str, *, required: bool = False) -> dict[str, Any]:
    """Return the HTML attributes of the control `name` of a form that say what is valid."""
    field = SCHEMAS[form].fields[name]
    found: dict[str, Any] = {"name": name}
    if required or field.required:
        found["required"] = ""
    for validator in field.validators:
        if isinstance(validator, Length):
            found |= {"minlength": validator.min, "data-max": validator.max}
        elif isinstance(validator, Range):
            found |= {"min": validator.min, "max": validator.max}
        elif isinstance(validator, Regexp):
            found["pattern"] = field.metadata["pattern"].removeprefix("^").removesuffix("$")
    if isinstance(field, NewPassword):
        found["minlength"] = current_app.config["PASSWORD_MIN"]
    return {key: value for key, value in found.items() if value is not None}


def image_types() -> str:
    """Return the media types of images that can be uploaded, for the attribute `accept`."""
    return ",".join(MEDIA_TYPES)
