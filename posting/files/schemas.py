"""Files."""

from marshmallow import fields

from posting.files.formats import FORMATS
from posting.web.schemas import (
    EXAMPLE_ID,
    Identifier,
    Input,
    NamedFile,
    Output,
    Timestamp,
    described,
    extensible,
)

MEDIA_TYPES = sorted({format.media_type for format in FORMATS.values()})


class FileUpload(Input):
    """A new file."""

    file = NamedFile(
        "MAX_FILE_BYTES",
        metadata={
            "description": "With a name, whose extension is "
            + ", ".join(f"`.{extension}`" for extension in FORMATS)
            + "."
        },
    )


class File(Output):
    """A file of a post or of a comment, or one that is not attached yet."""

    computed: tuple[str, ...] = ("url", "media_type")

    id = Identifier()
    url = fields.String(
        metadata={"format": "uri"}
        | described(f"https://example.org/files/{EXAMPLE_ID}/minutes.pdf", "It is a download.")
    )
    post_id = Identifier(
        "The post with it, or with its comment. Null until it is attached.", allow_none=True
    )
    comment_id = Identifier("Null unless it is a file of a comment.", allow_none=True)
    name = fields.String(metadata=described("minutes.pdf"))
    media_type = fields.String(metadata=extensible(MEDIA_TYPES, "application/pdf"))
    size = fields.Integer(metadata=described(20480, "In bytes."))
    created_at = Timestamp()
