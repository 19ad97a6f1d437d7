"""Thumbnails of images. `flask images thumbnails` makes those of existing images."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

IDENTIFIER = sa.String(21).with_variant(sa.String(21, collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "thumbnails",
        sa.Column("image_id", IDENTIFIER, nullable=False),
        sa.Column("width", sa.Integer(), nullable=False),
        sa.Column("height", sa.Integer(), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["image_id"], ["images.id"], name="fk_thumbnails_image_id_images", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("image_id", name="pk_thumbnails"),
        sa.CheckConstraint(
            "width BETWEEN 1 AND 320 AND height BETWEEN 1 AND 320",
            name=op.f("ck_thumbnails_dimensions"),
        ),
        sa.CheckConstraint("length(data) BETWEEN 1 AND 20000", name=op.f("ck_thumbnails_size")),
    )


def downgrade() -> None:
    op.drop_table("thumbnails")
