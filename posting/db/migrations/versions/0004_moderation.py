"""Suspension of users, and the moderation log."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

IDENTIFIER = sa.String(21).with_variant(sa.String(21, collation="C"), "postgresql")
TIMESTAMP = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.add_column("users", sa.Column("suspended_at", TIMESTAMP))
    op.create_table(
        "moderation_acts",
        sa.Column("id", IDENTIFIER, nullable=False),
        sa.Column("moderator", sa.String(32), nullable=False),
        sa.Column("moderator_id", IDENTIFIER),
        sa.Column("act", sa.String(16), nullable=False),
        sa.Column("target", sa.String(64), nullable=False),
        sa.Column("created_at", TIMESTAMP, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_moderation_acts"),
    )
    op.create_index("ix_moderation_acts_created_at", "moderation_acts", ["created_at"])


def downgrade() -> None:
    op.drop_table("moderation_acts")
    op.drop_column("users", "suspended_at")
