"""Reports, locked and pinned posts, and the reasons of suspensions."""

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None

IDENTIFIER = sa.String(21).with_variant(sa.String(21, collation="C"), "postgresql")
TIMESTAMP = sa.DateTime(timezone=True)
IS_OPEN, IS_CLOSED = "closed_at IS NULL", "closed_at IS NOT NULL"
# The indexes of some of the reports: name, columns, condition, and whether they are unique.
INDEXES = (
    ("ix_reports_created_at_id", ["created_at", "id"], IS_OPEN, False),
    ("ix_reports_closed_at_id", ["closed_at", "id"], IS_CLOSED, False),
    ("uq_reports_open", ["reporter_id", "target_kind", "target_id"], IS_OPEN, True),
    ("ix_reports_target_id", ["target_id"], IS_OPEN, False),
    ("ix_reports_post_id", ["post_id"], IS_OPEN, False),
)


def upgrade() -> None:
    op.add_column("posts", sa.Column("locked_at", TIMESTAMP))
    op.add_column("posts", sa.Column("pinned_at", TIMESTAMP))
    is_pinned = "pinned_at IS NOT NULL"
    create_partial_index("ix_posts_pinned_at_id", "posts", ["pinned_at", "id"], is_pinned)
    check = sa.CheckConstraint(
        "length(suspension_reason) <= 500", name=op.f("ck_users_suspension_reason_length")
    )
    op.add_column("users", sa.Column("suspension_reason", sa.String(500), check))
    op.create_table(
        "reports",
        sa.Column("id", IDENTIFIER, nullable=False),
        sa.Column("reporter_id", IDENTIFIER, nullable=False),
        sa.Column("target_kind", sa.String(8), nullable=False),
        sa.Column("target_id", IDENTIFIER, nullable=False),
        sa.Column("post_id", IDENTIFIER),
        sa.Column("author_id", IDENTIFIER),
        sa.Column("excerpt", sa.String(300), nullable=False),
        sa.Column("target_updated_at", TIMESTAMP, nullable=False),
        sa.Column("reason", sa.String(1000), nullable=False),
        sa.Column("outcome", sa.String(16)),
        sa.Column("note", sa.String(500)),
        sa.Column("created_at", TIMESTAMP, nullable=False),
        sa.Column("closed_at", TIMESTAMP),
        sa.Column("closed_by_id", IDENTIFIER),
        sa.PrimaryKeyConstraint("id", name="pk_reports"),
        sa.CheckConstraint(
            "target_kind IN ('post', 'comment', 'user')", name=op.f("ck_reports_target_kind")
        ),
        sa.CheckConstraint("length(excerpt) <= 300", name=op.f("ck_reports_excerpt_length")),
        sa.CheckConstraint(
            "length(reason) BETWEEN 1 AND 1000", name=op.f("ck_reports_reason_length")
        ),
        sa.CheckConstraint(
            "outcome IN ('dismissed', 'removed', 'suspended')", name=op.f("ck_reports_outcome")
        ),
        sa.CheckConstraint(
            "(closed_at IS NULL) = (outcome IS NULL)", name=op.f("ck_reports_closed")
        ),
        sa.CheckConstraint("length(note) <= 500", name=op.f("ck_reports_note_length")),
    )
    for name, columns, where, is_unique in INDEXES:
        create_partial_index(name, "reports", columns, where, unique=is_unique)
    op.create_index("ix_reports_reporter_id_created_at", "reports", ["reporter_id", "created_at"])
    op.create_index("ix_reports_author_id_closed_at", "reports", ["author_id", "closed_at"])
    op.drop_index("ix_acts_created_at", "acts")
    op.create_index("ix_acts_created_at_id", "acts", ["created_at", "id"])
    op.create_index("ix_acts_user_id_created_at_id", "acts", ["user_id", "created_at", "id"])


def downgrade() -> None:
    op.drop_index("ix_acts_user_id_created_at_id", "acts")
    op.drop_index("ix_acts_created_at_id", "acts")
    op.create_index("ix_acts_created_at", "acts", ["created_at"])
    op.drop_table("reports")
    op.drop_column("users", "suspension_reason")
    op.drop_index("ix_posts_pinned_at_id", "posts")
    op.drop_column("posts", "pinned_at")
    op.drop_column("posts", "locked_at")


def create_partial_index(
    name: str, table: str, columns: list[str], where: str, *, unique: bool = False
) -> None:
    condition = sa.text(where)
    op.create_index(
        name, table, columns, unique=unique, sqlite_where=condition, postgresql_where=condition
    )
