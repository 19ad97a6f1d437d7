"""Attributes of form controls, from the marshmallow schemas, so that there is one set of rules.

Browsers count the UTF-16 code units of a text and schemas its characters, so for emoji and rare
scripts a control may accept less than the API.
"""

from typing import Any

from flask import current_app
from marshmallow.validate import Length, Regexp

from posting.accounts.fields import NewPassword
from posting.accounts.schemas import Credentials, ProfileChange, SignUp, TokenInput
from posting.comments.schemas import CommentInput
from posting.images.schemas import MEDIA_TYPES, ImageUpload
from posting.posts.schemas import PostInput

SCHEMAS = {
    "sign-up": SignUp(),
    "sign-in": Credentials(),
    "profile": ProfileChange(),
    "post": PostInput(),
    "comment": CommentInput(),
    "image": ImageUpload(),
    "token": TokenInput(),
}


def attributes(form: str, name: str) -> dict[str, Any]:
    """Return the HTML attributes of the control `name` of a form that say what is valid."""
    field = SCHEMAS[form].fields[name]
    found: dict[str, Any] = {"name": name}
    if field.required:
        found["required"] = ""
    for validator in field.validators:
        if isinstance(validator, Length):
            found |= {"minlength": validator.min, "maxlength": validator.max}
        elif isinstance(validator, Regexp):
            found["pattern"] = field.metadata["pattern"].removeprefix("^").removesuffix("$")
    if isinstance(field, NewPassword):
        found["minlength"] = current_app.config["PASSWORD_MIN"]
    return {key: value for key, value in found.items() if value is not None}


def image_types() -> str:
    """Return the media types of images that can be uploaded, for the attribute `accept`."""
    return ",".join(MEDIA_TYPES)
