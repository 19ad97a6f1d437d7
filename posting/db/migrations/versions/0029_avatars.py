"""Avatars of members."""

import sqlalchemy as sa
from alembic import op

revision = "0029"
down_revision = "0028"
branch_labels = None
depends_on = None

IDENTIFIER = sa.String(21).with_variant(sa.String(21, collation="C"), "postgresql")


def upgrade() -> None:
    op.add_column("users", sa.Column("avatar_id", IDENTIFIER))
    op.create_table(
        "avatars",
        sa.Column("id", IDENTIFIER, nullable=False),
        sa.Column("user_id", IDENTIFIER, nullable=False),
        sa.Column("data", sa.LargeBinary, nullable=False),
        sa.Column("small", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_avatars"),
        sa.UniqueConstraint("user_id", name="uq_avatars_user_id"),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name="fk_avatars_user_id_users", ondelete="CASCADE"
        ),
        sa.CheckConstraint("length(data) BETWEEN 1 AND 30000", name=op.f("ck_avatars_size")),
        sa.CheckConstraint("length(small) BETWEEN 1 AND 5000", name=op.f("ck_avatars_small_size")),
    )


def downgrade() -> None:
    op.drop_table("avatars")
    op.drop_column("users", "avatar_id")
