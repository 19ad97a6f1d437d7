"""Comments, images and idempotency keys."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

IDENTIFIER = sa.String(21).with_variant(sa.String(21, collation="C"), "postgresql")
TIMESTAMP = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.create_table(
        "comments",
        sa.Column("id", IDENTIFIER, nullable=False),
        sa.Column("post_id", IDENTIFIER, nullable=False),
        sa.Column("parent_id", IDENTIFIER),
        sa.Column("author_id", IDENTIFIER),
        sa.Column("content", sa.Text),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("created_at", TIMESTAMP, nullable=False),
        sa.Column("updated_at", TIMESTAMP, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_comments"),
        sa.ForeignKeyConstraint(
            ["post_id"], ["posts.id"], name="fk_comments_post_id_posts", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["parent_id"], ["comments.id"], name="fk_comments_parent_id_comments"
        ),
        sa.ForeignKeyConstraint(
            ["author_id"], ["users.id"], name="fk_comments_author_id_users", ondelete="SET NULL"
        ),
        sa.CheckConstraint(
            "length(content) BETWEEN 1 AND 10000", name=op.f("ck_comments_content_length")
        ),
    )
    op.create_index(
        "ix_comments_post_id_created_at_id", "comments", ["post_id", "created_at", "id"]
    )
    op.create_index("ix_comments_parent_id", "comments", ["parent_id"])
    op.create_index("ix_comments_author_id", "comments", ["author_id"])

    op.create_table(
        "images",
        sa.Column("id", IDENTIFIER, nullable=False),
        sa.Column("post_id", IDENTIFIER, nullable=False),
        sa.Column("media_type", sa.String(16), nullable=False),
        sa.Column("width", sa.Integer, nullable=False),
        sa.Column("height", sa.Integer, nullable=False),
        sa.Column("size", sa.Integer, nullable=False),
        sa.Column("alt", sa.String(500)),
        sa.Column("created_at", TIMESTAMP, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_images"),
        sa.ForeignKeyConstraint(
            ["post_id"], ["posts.id"], name="fk_images_post_id_posts", ondelete="CASCADE"
        ),
        sa.CheckConstraint(
            "media_type IN ('image/png', 'image/jpeg', 'image/webp', 'image/gif')",
            name=op.f("ck_images_media_type"),
        ),
        sa.CheckConstraint(
            "width > 0 AND height > 0 AND size > 0", name=op.f("ck_images_dimensions")
        ),
        sa.CheckConstraint("length(alt) <= 500", name=op.f("ck_images_alt_length")),
    )
    op.create_index("ix_images_post_id_created_at_id", "images", ["post_id", "created_at", "id"])

    op.create_table(
        "image_data",
        sa.Column("image_id", IDENTIFIER, nullable=False),
        sa.Column("data", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("image_id", name="pk_image_data"),
        sa.ForeignKeyConstraint(
            ["image_id"], ["images.id"], name="fk_image_data_image_id_images", ondelete="CASCADE"
        ),
    )

    op.create_table(
        "idempotency_keys",
        sa.Column("user_id", IDENTIFIER, nullable=False),
        sa.Column("key", sa.String(255), nullable=False),
        sa.Column("fingerprint", sa.String(64), nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("headers", sa.JSON, nullable=False),
        sa.Column("created_at", TIMESTAMP, nullable=False),
        sa.PrimaryKeyConstraint("user_id", "key", name="pk_idempotency_keys"),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name="fk_idempotency_keys_user_id_users", ondelete="CASCADE"
        ),
    )
    op.create_index("ix_idempotency_keys_created_at", "idempotency_keys", ["created_at"])


def downgrade() -> None:
    op.execute("UPDATE posts SET comment_count = 0")
    for table in ("idempotency_keys", "image_data", "images", "comments"):
        op.drop_table(table)
