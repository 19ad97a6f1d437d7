"""Users, sessions and tokens: the schemas of requests and responses."""

from collections.abc import Mapping
from typing import Any

from flask import current_app
from marshmallow import ValidationError, fields, post_load, validates_schema
from marshmallow.validate import Regexp

from posting.accounts.fields import (
    MAX_PASSWORD_LENGTH,
    USERNAME_PATTERN,
    NewPassword,
    is_own_name,
    not_reserved,
)
from posting.accounts.models import MEMBER, MODERATOR, ROLES
from posting.mail.schemas import MailAddress
from posting.web.errors import REQUIRED, Message
from posting.web.pagination import NOT_A_CURSOR
from posting.web.schemas import (
    EXAMPLE_ID,
    EXAMPLE_TOKEN,
    LINE_OR_EMPTY_PATTERN,
    NOT_BLANK_PATTERN,
    ONE_LINE_PATTERN,
    VISIBLE_OR_EMPTY_PATTERN,
    Identifier,
    Input,
    Length,
    OneOf,
    Output,
    PageQuery,
    Parameter,
    String,
    Timestamp,
    TimestampInput,
    described,
    extensible,
    keeps_direction,
    not_blank,
    one_line,
)

SORTS = ("name", "newest")
OF_ALL = Message("unknown", "Only the list of all accounts has an order to choose.")
BOTH_NAMES = Message("repeated", "Send only one of username and q.")
SAME_AS_USERNAME = Message("same_as_username", "Must not be the username.")


MAX_REASON = 500


class Author(Output):
    """An author in short."""

    id = Identifier()
    username = fields.String(metadata=described("ada"))
    display_name = fields.String(allow_none=True, metadata=described("Ada Lovelace"))
    avatar_url = fields.String(
        allow_none=True,
        metadata={"format": "uri"}
        | described(
            f"https://example.org/avatars/{EXAMPLE_ID}",
            "A square WebP of at most 256 pixels. With `/64`, of at most 64. Null without one.",
        ),
    )


def author() -> fields.Nested:
    """Return the field of an author."""
    metadata = {"description": "Null when the account is gone."}
    return fields.Nested(Author, allow_none=True, metadata=metadata)


def reason_field(text: str, **options: Any) -> String:
    """Return the field of the reason that a moderator gives."""
    return String(
        validate=[Length(1, MAX_REASON), not_blank],
        pattern=NOT_BLANK_PATTERN,
        metadata=described("This is advertising.", text),
        **options,
    )


MALFORMED_USERNAME = Message(
    "malformed",
    "Must be 3 to 32 characters of A-Z, a-z, 0-9, '_' and '-', the first a letter or digit.",
)


class UsersQuery(PageQuery):
    """A page of all accounts, or of those whose names begin with a text, or one by its username."""

    username = String(
        validate=Length(max=256), metadata=described("ada", "A whole username, in any case.")
    )
    sort = Parameter(
        validate=OneOf(SORTS),
        metadata=described("name", "The order of all accounts. The default is `newest`."),
    )
    q = Parameter(
        validate=[Length(1, 64), not_blank],
        metadata=described(
            "love", "The beginning of the username, the display name or a word in them."
        ),
    )

    @validates_schema
    def take_one_of_the_names(self, data: dict[str, Any], **_: Any) -> None:
        if "username" in data and "q" in data:
            raise ValidationError(BOTH_NAMES, "q")
        if "username" in data and "cursor" in data:
            raise ValidationError(NOT_A_CURSOR, "cursor")
        if "sort" in data and not {"username", "q"}.isdisjoint(data):
            raise ValidationError(OF_ALL, "sort")


class Credentials(Input):
    """A username and a password."""

    username = String(required=True, validate=Length(max=256), metadata=described("ada"))
    password = String(
        required=True,
        validate=Length(max=MAX_PASSWORD_LENGTH),
        metadata=described("a long walk by the sea"),
    )


class Profile(Input):
    """The fields of an account that its owner sets."""

    username = String(
        required=True,
        validate=[
            Regexp(USERNAME_PATTERN.removesuffix("$") + r"\Z", error=MALFORMED_USERNAME),
            not_reserved,
        ],
        pattern=USERNAME_PATTERN,
        metadata=described("ada"),
    )
    password = NewPassword(required=True)
    display_name = String(
        allow_none=True,
        validate=[Length(max=64), not_blank, one_line, keeps_direction],
        pattern=LINE_OR_EMPTY_PATTERN,
        metadata=described("Ada Lovelace"),
    )
    bio = String(
        allow_none=True,
        validate=[Length(max=500), not_blank],
        pattern=VISIBLE_OR_EMPTY_PATTERN,
        metadata=described("I write about engines."),
    )

    @validates_schema
    def password_is_not_the_username(self, data: dict[str, Any], **_: Any) -> None:
        if {"password", "username"} <= data.keys() and is_own_name(
            data["password"], data["username"]
        ):
            raise ValidationError(SAME_AS_USERNAME, "password")

    @post_load
    def replace_empty_by_null(self, data: dict[str, Any], **_: Any) -> dict[str, Any]:
        return data | {name: None for name in ("display_name", "bio") if data.get(name) == ""}


class SignUp(Profile):
    """A new account."""

    application = String(
        validate=[Length(1, 1000), not_blank],
        pattern=NOT_BLANK_PATTERN,
        metadata=described(
            "I weave too, and Grace has told me about you.",
            "Why the account should be approved. Required while new accounts need approval, "
            "unless there is an invitation. Else ignored.",
        ),
    )
    email = MailAddress(
        "A link to confirm the address is sent there. Applicants get a mail there when the account "
        "is approved."
    )
    invitation = String(
        validate=Length(max=256),
        metadata=described(
            "V1StGXR8_Z5jdHi6B-myT3cqSJzQ3uvEdY5oAjSkK_Jri0qmfyaLOFT6n3zC6zxs",
            "The part of an invitation's URL after `#`. Required while sign-up is by invitation.",
        ),
    )

    @validates_schema(pass_original=True, skip_on_field_errors=False)
    def require_what_the_setting_asks_for(self, _data: Any, original_data: Any, **_: Any) -> None:
        if not isinstance(original_data, Mapping):
            return
        if name := missing_for_signup(original_data):
            raise ValidationError(REQUIRED, name)


def missing_for_signup(given: Mapping[str, Any]) -> str | None:
    """Return the name of the field that the rule for sign-up asks for, if it is not given."""
    asked = {"approval": "application", "invitation": "invitation"}
    name = asked.get(current_app.config["SIGNUP"])
    return name if name and given.keys().isdisjoint({name, "invitation"}) else None


class ProfileChange(Profile):
    """A change to an account; a new password requires the current one."""

    current_password = String(
        validate=Length(max=MAX_PASSWORD_LENGTH), metadata=described("the old and tired one")
    )


NOT_WITH_CODE = Message("unknown", "Unknown field beside code.")


class PasswordReset(Input):
    """A new password, with the code of a link, or with a username and a recovery code."""

    code = String(
        validate=Length(max=256),
        metadata=described(
            "V1StGXR8_Z5jdHi6B-myT3cqSJzQ3uvEdY5oAjSkK_Jri0qmfyaLOFT6n3zC6zxs",
            "The part of a link's URL after `#`.",
        ),
    )
    username = String(validate=Length(max=256), metadata=described("ada"))
    recovery_code = String(
        validate=Length(max=256),
        metadata=described(
            "7G3K-9QWE-2M4X-V8ZA", "In upper or lower case, with or without hyphens."
        ),
    )
    password = NewPassword(required=True)

    @validates_schema(pass_original=True, skip_on_field_errors=False)
    def require_one_way(self, _data: Any, original_data: Any, **_: Any) -> None:
        if not isinstance(original_data, Mapping):
            return
        both, given = {"username", "recovery_code"}, original_data.keys()
        if "code" in given:
            errors = {name: [NOT_WITH_CODE] for name in both & given}
        elif both.isdisjoint(given):
            errors = {"code": [REQUIRED]}
        else:
            errors = {name: [REQUIRED] for name in both - given}
        if errors:
            raise ValidationError(errors)


class PasswordInput(Input):
    """The current password, which some requests need in addition to the session."""

    current_password = String(
        required=True,
        validate=Length(max=MAX_PASSWORD_LENGTH),
        metadata=described("a long walk by the sea"),
    )


class RecoveryCodesInput(PasswordInput):
    """The current password, to get new recovery codes."""


class SessionConfirmation(PasswordInput):
    """The password that is given again in a session."""


class ResetLinkInput(PasswordInput):
    """The password of who makes a link to choose a password."""


class ResetLink(Output):
    """A link by which somebody chooses a new password, once."""

    computed: tuple[str, ...] = ("url",)

    url = fields.String(
        metadata={"format": "uri"} | described("https://example.org/reset#V1StGXR8_Z5jdHi6B-myTx")
    )
    expires_at = Timestamp()


class RoleInput(PasswordInput):
    """The role of a member."""

    role = String(required=True, validate=OneOf(ROLES), metadata=described(MODERATOR))


class RecoveryCodes(Output):
    """The recovery codes of an account, which are not shown again."""

    left = fields.Integer(metadata=described(10, "How many have not been used."))
    created_at = Timestamp("Null if there are none.", allow_none=True)


class NewRecoveryCodes(RecoveryCodes):
    """New recovery codes."""

    codes = fields.List(
        fields.String(),
        metadata=described(["7G3K-9QWE-2M4X-V8ZA"], "Each works once. They are not shown again."),
    )


class User(Author):
    """An account's public profile."""

    bio = fields.String(allow_none=True, metadata=described("I write about engines."))
    role = fields.String(metadata=extensible(ROLES, MEMBER))
    created_at = Timestamp()
    updated_at = Timestamp("When the profile or the role was last changed.")


class ListedUser(User):
    """An account in a list."""

    computed: tuple[str, ...] = ("post_count",)
    optional: tuple[str, ...] = ("post_count",)

    post_count = fields.Integer(
        metadata=described(12, "Only in the list of all accounts. 100 means 100 or more.")
    )


class NewUser(User):
    """A new account."""

    state = fields.String(
        metadata=extensible(
            ["pending"], "pending", "Absent if the account may be used. Else it waits for approval."
        )
    )

    optional = ("state",)


class Application(Author):
    """A pending account, and why it should be approved."""

    id = Identifier("Of the account.")
    bio = fields.String(allow_none=True, metadata=described("I write about engines."))
    application = fields.String(metadata=described("I weave too, and Grace has told me about you."))
    created_at = Timestamp()


class RemovalQuery(Input):
    """The reason of a moderator who deletes what another member has written."""

    reason = reason_field("If you are a moderator, the author reads it.")


class DeletionQuery(Input):
    """Options for the deletion of an account."""

    content = Parameter(
        load_default="keep",
        validate=OneOf(["keep", "delete"]),
        metadata=described(
            "keep", "Keep posts and comments without an author, or delete them too."
        ),
    )


class Session(Output):
    """A sign-in of the current user."""

    computed: tuple[str, ...] = ("current",)

    id = Identifier()
    created_at = Timestamp()
    last_seen_at = Timestamp("Exact to the hour.")
    user_agent = fields.String(metadata=described("curl/8.14.1"))
    current = fields.Boolean(metadata=described(True, "Whether this request came with it."))


FEED = "feed"
SCOPES = ("read", "write", FEED)


class TokenInput(Input):
    """A new token."""

    name = String(
        required=True,
        validate=[Length(1, 64), not_blank, one_line],
        pattern=ONE_LINE_PATTERN,
        metadata=described("Backup script", "What it is for, in one line."),
    )
    scope = String(
        required=True,
        validate=OneOf(SCOPES),
        metadata=described(
            "write",
            "`read` for GET requests only, `write` for all. A token with the scope `feed` is part "
            "of the addresses of feeds, and is accepted nowhere else.",
        ),
    )
    expires_at = TimestampInput(
        metadata=described(
            "2027-11-21T09:30:00.125Z", "At most 366 days from now, which is the default."
        )
    )


class Token(Output):
    """A token of the current user, without its secret."""

    id = Identifier()
    name = fields.String(metadata=described("Backup script"))
    scope = fields.String(metadata=extensible(SCOPES, "write"))
    created_at = Timestamp()
    expires_at = Timestamp()
    last_used_at = Timestamp("Exact to the hour; null before the first use.", allow_none=True)


class NewToken(Token):
    """A new token, with its secret."""

    token = fields.String(
        metadata=described(
            EXAMPLE_TOKEN,
            "Send it as `Authorization: Bearer …`, or put it into the path of a feed if its scope "
            "is `feed`. It is not shown again.",
        )
    )
