"""The time of the last edit of a user and of an image; null instead of empty profiles."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for table in ("users", "images"):
        op.add_column(table, sa.Column("edited_at", sa.DateTime(timezone=True)))
    op.execute(
        "UPDATE users SET display_name = nullif(display_name, ''), bio = nullif(bio, '') "
        "WHERE display_name = '' OR bio = ''"
    )


def downgrade() -> None:
    for table in ("users", "images"):
        op.drop_column(table, "edited_at")
