"""Images in sizes for pages."""

import sqlalchemy as sa
from alembic import op

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None

IDENTIFIER = sa.String(21).with_variant(sa.String(21, collation="C"), "postgresql")


def upgrade() -> None:
    op.add_column("images", sa.Column("resized_at", sa.DateTime(timezone=True)))
    op.create_table(
        "image_sizes",
        sa.Column("image_id", IDENTIFIER, nullable=False),
        sa.Column("side", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("width", sa.Integer, nullable=False),
        sa.Column("height", sa.Integer, nullable=False),
        sa.Column("data", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("image_id", "side", name="pk_image_sizes"),
        sa.ForeignKeyConstraint(
            ["image_id"], ["images.id"], name="fk_image_sizes_image_id_images", ondelete="CASCADE"
        ),
        sa.CheckConstraint("side IN (640, 1600)", name=op.f("ck_image_sizes_side")),
        sa.CheckConstraint(
            "width BETWEEN 1 AND side AND height BETWEEN 1 AND side",
            name=op.f("ck_image_sizes_dimensions"),
        ),
        sa.CheckConstraint("length(data) BETWEEN 1 AND 800000", name=op.f("ck_image_sizes_size")),
    )


def downgrade() -> None:
    op.drop_table("image_sizes")
    op.drop_column("images", "resized_at")
