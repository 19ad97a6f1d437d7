"""The site."""

from marshmallow import fields

from posting.config import INVITATIONS, READING, SIGNUP, VERSION
from posting.files.formats import FORMATS
from posting.images.schemas import MEDIA_TYPES
from posting.web.schemas import Output, described, extensible


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
    texts = fields.Nested(Texts)
    images = fields.Nested(ImageLimits)
    files = fields.Nested(FileLimits)
    users = fields.Nested(UserLimits)
    page_sizes = fields.Nested(PageSizes)
    max_json_bytes = fields.Integer(metadata=described(1_310_720, "Of a body."))
    rate_limits = fields.List(fields.Nested(RateLimit))
