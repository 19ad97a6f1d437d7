"""Index comments by author and creation time."""

from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

COLUMNS = ["author_id", "created_at", "id"]


def upgrade() -> None:
    op.create_index("ix_comments_author_id_created_at_id", "comments", COLUMNS)
    op.drop_index("ix_comments_author_id", "comments")


def downgrade() -> None:
    op.create_index("ix_comments_author_id", "comments", ["author_id"])
    op.drop_index("ix_comments_author_id_created_at_id", "comments")
