"""The time of the last comment on a post, and posts in the order of their last activity."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

LAST_ACTIVITY = sa.text("coalesce(last_comment_at, created_at)")
INDEX, INDEX_BY_AUTHOR = "ix_posts_last_activity_at_id", "ix_posts_author_id_last_activity_at_id"


def upgrade() -> None:
    op.add_column("posts", sa.Column("last_comment_at", sa.DateTime(timezone=True)))
    op.execute(
        "UPDATE posts SET last_comment_at = "
        "(SELECT max(created_at) FROM comments WHERE post_id = posts.id) WHERE comment_count > 0"
    )
    op.create_index(INDEX, "posts", [LAST_ACTIVITY, "id"])
    op.create_index(INDEX_BY_AUTHOR, "posts", ["author_id", LAST_ACTIVITY, "id"])


def downgrade() -> None:
    for index in (INDEX, INDEX_BY_AUTHOR):
        op.drop_index(index, "posts")
    op.drop_column("posts", "last_comment_at")
