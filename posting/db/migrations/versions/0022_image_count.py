"""The number of images of a post."""

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # The former version inserts posts without it until the service is restarted.
    count = sa.Column("image_count", sa.Integer, nullable=False, server_default="0")
    op.add_column("posts", count)
    op.execute(
        "UPDATE posts SET image_count = (SELECT count(*) FROM images WHERE post_id = posts.id) "
        "WHERE id IN (SELECT post_id FROM images)"
    )


def downgrade() -> None:
    op.drop_column("posts", "image_count")
