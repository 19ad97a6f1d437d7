"""The cover picture of the site."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0042"
down_revision = "0041"
branch_labels = None
depends_on = None

IDENTIFIER = sa.String(21).with_variant(sa.String(21, collation="C"), "postgresql")


def upgrade() -> None:
    add_column("cover_id", IDENTIFIER)
    add_column("cover", sa.LargeBinary(), cover_size="length(cover) BETWEEN 1 AND 524288")
    add_column(
        "small_cover",
        sa.LargeBinary(),
        small_cover_size="length(small_cover) BETWEEN 1 AND 524288",
        cover="(cover_id IS NULL) = (cover IS NULL) AND (cover IS NULL) = (small_cover IS NULL)",
    )


def add_column(name: str, type: sa.types.TypeEngine[Any], **checks: str) -> None:
    """Add a column with checks by their names. SQLite adds a check with its column only."""
    kind = type.compile(op.get_bind().dialect)
    rules = "".join(f" CONSTRAINT ck_site_{rule} CHECK ({sql})" for rule, sql in checks.items())
    op.execute(f"ALTER TABLE site ADD COLUMN {name} {kind}{rules}")


def downgrade() -> None:
    for name in ("small_cover", "cover", "cover_id"):
        op.drop_column("site", name)
