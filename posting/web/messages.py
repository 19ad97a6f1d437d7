"""Messages on errors in the input: a text for people, with a code for programs."""

from typing import ClassVar


class Message(str):
    """A text with a code, which formatting keeps.

    The code is registered, so define messages in modules and classes, not in functions.
    """

    codes: ClassVar[set[str]] = set()  # of all messages that are imported
    code: str

    def __new__(cls, code: str, text: str) -> "Message":
        message = super().__new__(cls, text)
        message.code = code
        cls.codes.add(code)
        return message

    def __getnewargs__(self) -> tuple[str, str]:  # type: ignore[override]  # copies keep the code
        return self.code, str(self)

    def format(self, *args: object, **kwargs: object) -> "Message":
        return Message(self.code, super().format(*args, **kwargs))


MALFORMED_ID = Message("malformed", "Must be exactly 21 characters of A-Z, a-z, 0-9, '_' and '-'.")
REPEATED = Message("repeated", "Given more than once.")
REQUIRED = Message("required", "Missing data for required field.")
UNKNOWN = Message("unknown", "Unknown field.")
