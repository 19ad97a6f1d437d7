"""Base classes of errors with codes of their own, for programs."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from werkzeug.exceptions import NotFound


class Coded:
    """A base class of errors with a code, which each class registers.

    The error of Werkzeug that sets the status comes second, as in
    `class TooManyTokens(Coded, Conflict)`. `errors` says what in the request is wrong, if that is
    known. `members` are further members of the problem details, which `Problem` declares.
    """

    codes: ClassVar[set[str]] = set()  # of all classes that are imported
    error_code: ClassVar[str]
    errors: Sequence[Mapping[str, str]] = ()
    members: Mapping[str, str | None] = {}

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        Coded.codes.add(cls.error_code)


class NoSuch(Coded, NotFound):
    """A base class of errors about a thing that does not exist.

    A subclass names the thing, as in `class NoSuchToken(NoSuch, thing="token")`.
    """

    error_code = "not_found"

    def __init_subclass__(cls, *, thing: str) -> None:
        cls.error_code, cls.description = f"no_such_{thing}", f"There is no such {thing}."
        super().__init_subclass__()
