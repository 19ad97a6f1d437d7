"""Images that are not attached yet, and images of comments."""

import sqlalchemy as sa
from alembic import op

revision = "0028"
down_revision = "0027"
branch_labels = None
depends_on = None

IDENTIFIER = sa.String(21).with_variant(sa.String(21, collation="C"), "postgresql")
TIMESTAMP = sa.DateTime(timezone=True)
OWNERS = """
    UPDATE images SET owner_id = (SELECT author_id FROM posts WHERE posts.id = images.post_id)"""
RULES = {
    "ck_images_attached": "(post_id IS NULL) = (unattached_since IS NOT NULL)",
    "ck_images_comment": "comment_id IS NULL OR post_id IS NOT NULL",
}


def upgrade() -> None:
    op.add_column(
        "comments", sa.Column("image_count", sa.Integer, server_default="0", nullable=False)
    )
    op.drop_index("ix_images_post_id_created_at_id", "images")
    # SQLite cannot change a column, so a new table takes the place of this one. Triggers would be
    # lost, but it has none.
    with op.batch_alter_table("images", copy_from=former_table()) as images:
        images.alter_column("post_id", existing_type=IDENTIFIER, nullable=True)
        for column in new_columns():
            images.add_column(column)
        images.create_foreign_key(
            "fk_images_comment_id_comments", "comments", ["comment_id"], ["id"], ondelete="CASCADE"
        )
        images.create_foreign_key(
            "fk_images_owner_id_users", "users", ["owner_id"], ["id"], ondelete="SET NULL"
        )
        for name, rule in RULES.items():
            images.create_check_constraint(op.f(name), rule)
    op.execute(OWNERS)
    op.create_index("ix_images_post_id_comment_id", "images", ["post_id", "comment_id"])
    op.create_index("ix_images_owner_id_post_id_size", "images", ["owner_id", "post_id", "size"])
    for name in ("comment_id", "unattached_since"):
        where = sa.text(f"{name} IS NOT NULL")
        op.create_index(
            f"ix_images_{name}", "images", [name], sqlite_where=where, postgresql_where=where
        )


def downgrade() -> None:
    # The former version has only images of posts. SQLite deletes no rows that refer to others now.
    images = sa.table("images", *map(sa.column, ("id", "post_id", "comment_id")))
    is_other = sa.or_(images.c.post_id.is_(None), images.c.comment_id.is_not(None))
    for name in ("image_data", "thumbnails", "image_sizes"):
        table = sa.table(name, sa.column("image_id"))
        others = sa.select(images.c.id).where(is_other)
        op.execute(sa.delete(table).where(table.c.image_id.in_(others)))
    op.execute(sa.delete(images).where(is_other))
    for columns in (
        "post_id_comment_id",
        "owner_id_post_id_size",
        "comment_id",
        "unattached_since",
    ):
        op.drop_index(f"ix_images_{columns}", "images")
    with op.batch_alter_table("images", copy_from=new_table()) as batch:
        for name in RULES:
            batch.drop_constraint(op.f(name), type_="check")
        batch.drop_constraint("fk_images_comment_id_comments", type_="foreignkey")
        batch.drop_constraint("fk_images_owner_id_users", type_="foreignkey")
        for column in new_columns():
            batch.drop_column(column.name)
        batch.alter_column("post_id", existing_type=IDENTIFIER, nullable=False)
    op.create_index("ix_images_post_id_created_at_id", "images", ["post_id", "created_at", "id"])
    op.drop_column("comments", "image_count")


def new_columns() -> list[sa.Column[object]]:
    return [
        sa.Column("comment_id", IDENTIFIER),
        sa.Column("owner_id", IDENTIFIER),
        sa.Column("position", sa.Integer, server_default="0", nullable=False),
        sa.Column("unattached_since", TIMESTAMP),
    ]


def former_table() -> sa.Table:
    metadata = sa.MetaData()
    for name in ("posts", "comments", "users"):
        sa.Table(name, metadata, sa.Column("id", IDENTIFIER, primary_key=True))
    return sa.Table(
        "images",
        metadata,
        sa.Column("id", IDENTIFIER, nullable=False),
        sa.Column("post_id", IDENTIFIER, nullable=False),
        sa.Column("media_type", sa.String(16), nullable=False),
        sa.Column("width", sa.Integer, nullable=False),
        sa.Column("height", sa.Integer, nullable=False),
        sa.Column("size", sa.Integer, nullable=False),
        sa.Column("alt", sa.String(500)),
        sa.Column("created_at", TIMESTAMP, nullable=False),
        sa.Column("edited_at", TIMESTAMP),
        sa.Column("resized_at", TIMESTAMP),
        sa.PrimaryKeyConstraint("id", name="pk_images"),
        sa.ForeignKeyConstraint(
            ["post_id"], ["posts.id"], name="fk_images_post_id_posts", ondelete="CASCADE"
        ),
        sa.CheckConstraint(
            "media_type IN ('image/png', 'image/jpeg', 'image/webp', 'image/gif')",
            name="ck_images_media_type",
        ),
        sa.CheckConstraint("width > 0 AND height > 0 AND size > 0", name="ck_images_dimensions"),
        sa.CheckConstraint("length(alt) <= 500", name="ck_images_alt_length"),
    )


def new_table() -> sa.Table:
    table = former_table()
    for column in new_columns():
        table.append_column(column)
    table.c.post_id.nullable = True
    for name, rule in RULES.items():
        table.append_constraint(sa.CheckConstraint(rule, name=name))
    for key, parent, action in (
        ("comment_id", "comments", "CASCADE"),
        ("owner_id", "users", "SET NULL"),
    ):
        foreign_key = sa.ForeignKeyConstraint(
            [key], [f"{parent}.id"], name=f"fk_images_{key}_{parent}", ondelete=action
        )
        table.append_constraint(foreign_key)
    return table
