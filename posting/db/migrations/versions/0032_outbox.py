"""What is to be sent."""

import sqlalchemy as sa
from alembic import op

revision = "0032"
down_revision = "0031"
branch_labels = None
depends_on = None

IDENTIFIER = sa.String(21).with_variant(sa.String(21, collation="C"), "postgresql")
TIMESTAMP = sa.DateTime(timezone=True)
IS_WAITING, HAS_FAILED = sa.text("failed_at IS NULL"), sa.text("failed_at IS NOT NULL")
HAS_USER = sa.text("user_id IS NOT NULL")


def upgrade() -> None:
    op.create_table(
        "outbox",
        sa.Column("id", IDENTIFIER, nullable=False),
        sa.Column("channel", sa.String(16), nullable=False),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("user_id", IDENTIFIER),
        sa.Column("about", IDENTIFIER),
        sa.Column("rank", sa.SmallInteger(), nullable=False),
        sa.Column("queued_at", TIMESTAMP, nullable=False),
        sa.Column("due_at", TIMESTAMP, nullable=False),
        sa.Column("is_taken", sa.Boolean(), nullable=False),
        sa.Column("turn", sa.Integer(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("failed_at", TIMESTAMP),
        sa.Column("error", sa.String(300)),
        sa.CheckConstraint("length(error) <= 300", name=op.f("ck_outbox_error_length")),
        sa.PrimaryKeyConstraint("id", name="pk_outbox"),
    )
    for columns, condition in (
        (["channel", "rank", "due_at", "id"], IS_WAITING),
        (["failed_at"], HAS_FAILED),
        (["user_id"], HAS_USER),
    ):
        op.create_index(
            f"ix_outbox_{'_'.join(columns)}",
            "outbox",
            columns,
            sqlite_where=condition,
            postgresql_where=condition,
        )


def downgrade() -> None:
    op.drop_table("outbox")
