"""The site."""

import re
from typing import Any

from marshmallow import ValidationError, fields, post_load

from posting.config import (
    INVITATIONS,
    MAX_DESCRIPTION,
    MAX_NAME,
    MODERATION_LOG,
    READING,
    SIGNUP,
    VERSION,
)
from posting.files.formats import FORMATS
from posting.images.schemas import MEDIA_TYPES
from posting.languages import LANGUAGES
from posting.site.colors import COLOR, LIGHT, MIN_CONTRAST, contrast
from posting.site.models import MAX_TEXT
from posting.site.settings import CHOICES, TEXTS
from posting.web.errors import Message
from posting.web.schemas import (
    EXAMPLE_ID,
    LINE_OR_EMPTY_PATTERN,
    VISIBLE_OR_EMPTY_PATTERN,
    File,
    Input,
    Length,
    OneOf,
    Output,
    String,
    described,
    extensible,
    keeps_direction,
    not_blank,
    one_line,
)

ABOUT = "We weave, and talk about it."
RULES = "Be kind, and stay on topic."
ACCENT = "#204f95"
NOT_A_COLOR = Message("malformed", "Must look like #204f95.")
TOO_LIGHT = Message(
    "too_light",
    "Choose a darker color. The contrast of this one with the page is {}, and it must be "
    f"{MIN_CONTRAST} or more.",
)


class TextLength(Output):
    """The number of characters that a text may have."""

    min = fields.Integer(metadata=described(1))
    max = fields.Integer(metadata=described(200))


class Texts(Output):
    """The lengths of texts."""

    username = fields.Nested(TextLength)
    password = fields.Nested(TextLength)
    display_name = fields.Nested(TextLength)
    bio = fields.Nested(TextLength)
    application = fields.Nested(TextLength)
    title = fields.Nested(TextLength)
    content = fields.Nested(TextLength)
    comment = fields.Nested(TextLength)
    alt = fields.Nested(TextLength)


class ImageLimits(Output):
    """The limits of images."""

    per_post = fields.Integer(metadata=described(10))
    per_comment = fields.Integer(metadata=described(4))
    unattached = fields.Integer(
        metadata=described(40, "Of a member, before a post or comment has them.")
    )
    max_bytes = fields.Integer(metadata=described(5_242_880, "Of each file."))
    max_member_bytes = fields.Integer(
        metadata=described(1_073_741_824, "Of all images and files of a member.")
    )
    media_types = fields.List(
        fields.String(metadata=extensible(MEDIA_TYPES, "image/png")),
        metadata=described([*MEDIA_TYPES]),
    )


class FileLimits(Output):
    """The limits of files."""

    per_text = fields.Integer(metadata=described(5, "Of a post, and of a comment."))
    unattached = fields.Integer(
        metadata=described(40, "Of a member, before a post or comment has them.")
    )
    max_bytes = fields.Integer(metadata=described(10_485_760, "Of each file."))
    extensions = fields.List(fields.String(), metadata=described([*FORMATS]))


class UserLimits(Output):
    """The numbers of things that a user may have at a time."""

    open_invitations = fields.Integer(metadata=described(50))
    tokens = fields.Integer(metadata=described(50))


class PageSizes(Output):
    """The numbers of items on a page of a list, by default and at most."""

    posts = fields.Integer(metadata=described(20))
    comments = fields.Integer(metadata=described(50))
    max = fields.Integer(metadata=described(100))
    max_expanded = fields.Integer(
        metadata=described(50, "Of posts with their content, images or files.")
    )


class RateLimit(Output):
    """A number of requests in a time."""

    name = fields.String(metadata=described("posts", "As in the header `RateLimit-Policy`."))
    requests = fields.Integer(metadata=described(300))
    seconds = fields.Integer(metadata=described(3600))


class Site(Output):
    """The name of the community, its rules for sign-up and reading, and all limits."""

    name = fields.String(metadata=described("The Loom"))
    description = fields.String(metadata=described("A place for people who weave."))
    version = fields.String(metadata=described(VERSION, "The version of this interface."))
    signup = fields.String(metadata=extensible(SIGNUP, "open", "Who may create an account."))
    invitations = fields.String(
        metadata=extensible(INVITATIONS, "moderators", "Who may invite others.")
    )
    reading = fields.String(metadata=extensible(READING, "everyone", "Who may read."))
    moderation_log = fields.String(
        metadata=extensible(MODERATION_LOG, "moderators", "Who may read the moderation log.")
    )
    language = fields.String(
        metadata=extensible(tuple(LANGUAGES), "en", "The language of pages, mails and feeds.")
    )
    about = fields.String(allow_none=True, metadata=described(ABOUT, "Markdown."))
    rules = fields.String(allow_none=True, metadata=described(RULES, "Markdown."))
    accent = fields.String(
        allow_none=True, metadata=described(ACCENT, "The color of links and buttons.")
    )
    logo_url = fields.String(
        allow_none=True,
        metadata={"format": "uri"}
        | described(
            f"https://example.org/site/logo/{EXAMPLE_ID}",
            "A square WebP of at most 256 pixels. With `/64`, of at most 64. Null without one.",
        ),
    )
    cover_url = fields.String(
        allow_none=True,
        metadata={"format": "uri"}
        | described(
            f"https://example.org/site/cover/{EXAMPLE_ID}",
            "A WebP of at most 1280 pixels, about three times as wide as high. With `/768`, of at "
            "most 768. Null without one.",
        ),
    )
    fixed = fields.List(
        fields.String(metadata=extensible((*TEXTS, *CHOICES), "name")),
        metadata=described(["name"], "What the operator has set, so that no owner can change it."),
    )
    mail = fields.Boolean(
        metadata=described(True, "Whether the service sends mails to members who want them.")
    )
    texts = fields.Nested(Texts)
    images = fields.Nested(ImageLimits)
    files = fields.Nested(FileLimits)
    users = fields.Nested(UserLimits)
    page_sizes = fields.Nested(PageSizes)
    max_json_bytes = fields.Integer(metadata=described(1_310_720, "Of a body."))
    rate_limits = fields.List(fields.Nested(RateLimit))


def readable(value: str) -> None:
    """Refuse a text that is not a color, or a color that cannot be read on a light page."""
    if not re.fullmatch(COLOR, value):
        raise ValidationError(NOT_A_COLOR)
    ratio = contrast(value, LIGHT)
    if ratio < MIN_CONTRAST:
        raise ValidationError(TOO_LIGHT.format(int(ratio * 10) / 10))


class Choice(String):
    """One of a few words. Null stands for the default."""

    def __init__(self, choices: tuple[str, ...], text: str) -> None:
        super().__init__(
            allow_none=True, validate=OneOf(choices), metadata=described(choices[0], text)
        )


class SiteInput(Input):
    """A change of what owners choose. Null or an empty text stands for the default."""

    name = String(
        allow_none=True,
        validate=[Length(max=MAX_NAME), not_blank, one_line, keeps_direction],
        pattern=LINE_OR_EMPTY_PATTERN,
        metadata=described("The Loom"),
    )
    description = String(
        allow_none=True,
        validate=[Length(max=MAX_DESCRIPTION), not_blank, one_line, keeps_direction],
        pattern=LINE_OR_EMPTY_PATTERN,
        metadata=described("A place for people who weave."),
    )
    about = String(
        allow_none=True,
        validate=[Length(max=MAX_TEXT), not_blank],
        pattern=VISIBLE_OR_EMPTY_PATTERN,
        metadata=described(ABOUT, "Markdown, for the page about the site."),
    )
    rules = String(
        allow_none=True,
        validate=[Length(max=MAX_TEXT), not_blank],
        pattern=VISIBLE_OR_EMPTY_PATTERN,
        metadata=described(RULES, "Markdown, for the same page."),
    )
    accent = String(
        allow_none=True,
        validate=readable,
        pattern=f"^{COLOR}$",
        metadata=described(
            ACCENT, f"A color that has a contrast of at least {MIN_CONTRAST} with the light page."
        ),
    )
    signup = Choice(SIGNUP, "Who may create an account.")
    invitations = Choice(INVITATIONS, "Who may invite others.")
    reading = Choice(READING, "Who may read.")
    moderation_log = Choice(MODERATION_LOG, "Who may read the moderation log.")
    language = Choice(tuple(LANGUAGES), "The language of pages, mails and feeds.")

    @post_load
    def leave_out_empty_texts(self, data: dict[str, Any], **_: Any) -> dict[str, Any]:
        return {name: value or None for name, value in data.items()}


class PictureUpload(Input):
    """A new logo or cover."""

    file = File(
        "MAX_IMAGE_BYTES",
        metadata={"description": "PNG, JPEG, WebP or GIF, detected from its content."},
    )
