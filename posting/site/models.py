"""The table of what owners choose for the site."""

from datetime import datetime

from sqlalchemy import CheckConstraint, LargeBinary, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from posting.config import INVITATIONS, MAX_DESCRIPTION, MAX_NAME, MODERATION_LOG, READING, SIGNUP
from posting.db.base import Editable, Identifier
from posting.db.types import now
from posting.languages import MAX_CODE

ONLY = "settings-of-this-site"  # the id of the only row
MAX_TEXT = 20_000  # characters of the rules, and of the text about the site
MAX_LOGO = 256 * 2**10  # bytes
MAX_COVER = 512 * 2**10  # bytes


def _one_of(name: str, choices: tuple[str, ...]) -> CheckConstraint:
    listed = ", ".join(f"'{choice}'" for choice in choices)
    return CheckConstraint(f"{name} IN ({listed})", name=name)


class Site(Editable):
    """The choices of owners about the site. A column is null where the default holds.

    `version` grows with each edit. Each new logo gets a new `logo_id`, and each new cover a new
    `cover_id`.
    """

    __tablename__ = "site"

    id: Mapped[str] = mapped_column(Identifier, primary_key=True, default=ONLY)
    version: Mapped[int] = mapped_column(default=1)
    updated_at: Mapped[datetime] = mapped_column(default=now)
    name: Mapped[str | None] = mapped_column(String(MAX_NAME))
    description: Mapped[str | None] = mapped_column(String(MAX_DESCRIPTION))
    about: Mapped[str | None] = mapped_column(Text)
    rules: Mapped[str | None] = mapped_column(Text)
    accent: Mapped[str | None] = mapped_column(String(7))
    signup: Mapped[str | None] = mapped_column(String(16))
    invitations: Mapped[str | None] = mapped_column(String(16))
    reading: Mapped[str | None] = mapped_column(String(16))
    moderation_log: Mapped[str | None] = mapped_column(String(16))
    language: Mapped[str | None] = mapped_column(String(MAX_CODE))
    # When an owner last began to download a backup.
    backed_up_at: Mapped[datetime | None] = mapped_column()
    logo_id: Mapped[str | None] = mapped_column(Identifier)
    logo: Mapped[bytes | None] = mapped_column(LargeBinary)
    small_logo: Mapped[bytes | None] = mapped_column(LargeBinary)
    cover_id: Mapped[str | None] = mapped_column(Identifier)
    cover: Mapped[bytes | None] = mapped_column(LargeBinary)
    small_cover: Mapped[bytes | None] = mapped_column(LargeBinary)

    __table_args__ = (
        CheckConstraint(f"id = '{ONLY}'", name="only"),
        CheckConstraint(f"length(name) BETWEEN 1 AND {MAX_NAME}", name="name_length"),
        CheckConstraint(f"length(description) <= {MAX_DESCRIPTION}", name="description_length"),
        CheckConstraint(f"length(about) <= {MAX_TEXT}", name="about_length"),
        CheckConstraint(f"length(rules) <= {MAX_TEXT}", name="rules_length"),
        CheckConstraint("length(accent) = 7", name="accent_length"),
        _one_of("signup", SIGNUP),
        _one_of("invitations", INVITATIONS),
        _one_of("reading", READING),
        _one_of("moderation_log", MODERATION_LOG),
        CheckConstraint(f"length(language) BETWEEN 2 AND {MAX_CODE}", name="language_length"),
        CheckConstraint(f"length(logo) BETWEEN 1 AND {MAX_LOGO}", name="logo_size"),
        CheckConstraint(f"length(small_logo) BETWEEN 1 AND {MAX_LOGO}", name="small_logo_size"),
        CheckConstraint(
            "(logo_id IS NULL) = (logo IS NULL) AND (logo IS NULL) = (small_logo IS NULL)",
            name="logo",
        ),
        CheckConstraint(f"length(cover) BETWEEN 1 AND {MAX_COVER}", name="cover_size"),
        CheckConstraint(f"length(small_cover) BETWEEN 1 AND {MAX_COVER}", name="small_cover_size"),
        CheckConstraint(
            "(cover_id IS NULL) = (cover IS NULL) AND (cover IS NULL) = (small_cover IS NULL)",
            name="cover",
        ),
    )
