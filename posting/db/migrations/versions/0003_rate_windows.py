"""Rate limits."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "rate_windows",
        sa.Column("key", sa.String(32), nullable=False),
        sa.Column("hits", sa.Integer, nullable=False),
        sa.Column("ends_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("key", name="pk_rate_windows"),
    )
    op.create_index("ix_rate_windows_ends_at", "rate_windows", ["ends_at"])


def downgrade() -> None:
    op.drop_table("rate_windows")
