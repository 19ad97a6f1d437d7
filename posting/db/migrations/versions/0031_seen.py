"""The comments that members have seen."""

import sqlalchemy as sa
from alembic import op

revision = "0031"
down_revision = "0030"
branch_labels = None
depends_on = None

IDENTIFIER = sa.String(21).with_variant(sa.String(21, collation="C"), "postgresql")
TIMESTAMP = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.create_table(
        "seen",
        sa.Column("post_id", IDENTIFIER, nullable=False),
        sa.Column("user_id", IDENTIFIER, nullable=False),
        sa.Column("up_to", IDENTIFIER),
        sa.Column("until", TIMESTAMP, nullable=False),
        sa.Column("seen_at", TIMESTAMP, nullable=False),
        sa.PrimaryKeyConstraint("post_id", "user_id", name="pk_seen"),
        sa.ForeignKeyConstraint(
            ["post_id"], ["posts.id"], name="fk_seen_post_id_posts", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name="fk_seen_user_id_users", ondelete="CASCADE"
        ),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_seen_user_id", "seen", ["user_id"])
    op.create_index("ix_seen_seen_at", "seen", ["seen_at"])


def downgrade() -> None:
    op.drop_table("seen")
