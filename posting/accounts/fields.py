"""Fields of usernames and passwords."""

from functools import cache
from importlib.metadata import distribution
from runpy import run_path
from typing import Any

from flask import current_app
from marshmallow import ValidationError

from posting.web.errors import Message
from posting.web.schemas import Length, String, described

MAX_PASSWORD_LENGTH = 256
MIN_USERNAME_LENGTH, MAX_USERNAME_LENGTH = 3, 32
# Escaped, since in HTML a pattern is a regular expression with the flag v.
USERNAME_PATTERN = (
    rf"^[A-Za-z0-9][A-Za-z0-9_\-]{{{MIN_USERNAME_LENGTH - 1},{MAX_USERNAME_LENGTH - 1}}}$"
)
RESERVED_USERNAMES = frozenset(
    "admin administrator anonymous api deleted everyone guest help info me mod moderator nobody "
    "null operator posting root security staff support system undefined webmaster".split()
)
COMMON_PASSWORD = Message("common_password", "This password is one of the most common ones.")
MASKED_PASSWORD = Message(
    "masked_password",
    "Must not be one character repeated, or only characters that hide a password, such as "
    "asterisks and dots.",
)
MASKS = frozenset("*.•∙·●○⬤■█ ")
RESERVED = Message("reserved", "This name is reserved.")
TOO_SHORT = Message("too_short", "Must have at least {} characters.")


def not_reserved(username: str) -> None:
    if username.lower() in RESERVED_USERNAMES:
        raise ValidationError(RESERVED)


@cache
def common_passwords() -> str:
    """Return zxcvbn's list of about 30,000 common passwords, lower case, each between two NULs.

    One string takes a twentieth of the memory of a set. Importing zxcvbn would load all its lists.
    """
    file = distribution("zxcvbn").locate_file("zxcvbn/frequency_lists.py")
    return "\0".join(["", *run_path(str(file))["FREQUENCY_LISTS"]["passwords"], ""])


def not_common(password: str) -> None:
    if f"\0{password.lower()}\0" in common_passwords():
        raise ValidationError(COMMON_PASSWORD)


def not_masked(password: str) -> None:
    """Refuse what programs show in place of a password, and any other character repeated."""
    characters = {each.casefold() for each in password}  # `İ` has two characters in lower case
    if len(characters) == 1 or characters <= MASKS:
        raise ValidationError(MASKED_PASSWORD)


class NewPassword(String):
    """A new password, without composition rules (NIST SP 800-63B).

    The document does not say `format: password`, because some generators of clients then send
    asterisks in place of the password.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(
            validate=[long_enough, Length(max=MAX_PASSWORD_LENGTH), not_masked, not_common],
            metadata=described("a long walk by the sea"),
            **kwargs,
        )

    def configured_limits(self) -> dict[str, Any]:
        return {"minLength": current_app.config["PASSWORD_MIN"]}


def long_enough(password: str) -> None:
    least = current_app.config["PASSWORD_MIN"]
    if len(password) < least:
        raise ValidationError(TOO_SHORT.format(least))


def is_own_name(password: str, username: str) -> bool:
    return password.lower() == username.lower()
