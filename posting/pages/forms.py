"""Attributes of form controls, from the marshmallow schemas, so that there is one set of rules.

Browsers count the UTF-16 code units of a text and schemas its characters, so for emoji and rare
scripts a control may accept less than the API.
"""

from typing import Any

from flask import current_app
from marshmallow.validate import Length, OneOf, Regexp

from posting.schemas.comments import CommentInput
from posting.schemas.fields import NewPassword
from posting.schemas.images import Image, ImageUpload
from posting.schemas.posts import PostInput
from posting.schemas.tokens import TokenInput
from posting.schemas.users import Credentials, ProfileChange, SignUp

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
    [accepted] = [v for v in Image().fields["media_type"].validators if isinstance(v, OneOf)]
    return ",".join(accepted.choices)
