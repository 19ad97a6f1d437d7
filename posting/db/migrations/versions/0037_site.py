"""The choices of owners about the site."""

import sqlalchemy as sa
from alembic import op

revision = "0037"
down_revision = "0036"
branch_labels = None
depends_on = None

IDENTIFIER = sa.String(21).with_variant(sa.String(21, collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "site",
        sa.Column("id", IDENTIFIER, nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("name", sa.String(60)),
        sa.Column("description", sa.String(200)),
        sa.Column("about", sa.Text()),
        sa.Column("rules", sa.Text()),
        sa.Column("accent", sa.String(7)),
        sa.Column("signup", sa.String(16)),
        sa.Column("invitations", sa.String(16)),
        sa.Column("reading", sa.String(16)),
        sa.Column("moderation_log", sa.String(16)),
        sa.Column("logo_id", IDENTIFIER),
        sa.Column("logo", sa.LargeBinary()),
        sa.Column("small_logo", sa.LargeBinary()),
        sa.CheckConstraint("id = 'settings-of-this-site'", name=op.f("ck_site_only")),
        sa.CheckConstraint("length(name) BETWEEN 1 AND 60", name=op.f("ck_site_name_length")),
        sa.CheckConstraint("length(description) <= 200", name=op.f("ck_site_description_length")),
        sa.CheckConstraint("length(about) <= 20000", name=op.f("ck_site_about_length")),
        sa.CheckConstraint("length(rules) <= 20000", name=op.f("ck_site_rules_length")),
        sa.CheckConstraint("length(accent) = 7", name=op.f("ck_site_accent_length")),
        sa.CheckConstraint(
            "signup IN ('open', 'approval', 'invitation', 'closed')", name=op.f("ck_site_signup")
        ),
        sa.CheckConstraint(
            "invitations IN ('moderators', 'members')", name=op.f("ck_site_invitations")
        ),
        sa.CheckConstraint("reading IN ('everyone', 'members')", name=op.f("ck_site_reading")),
        sa.CheckConstraint(
            "moderation_log IN ('moderators', 'public')", name=op.f("ck_site_moderation_log")
        ),
        sa.CheckConstraint("length(logo) BETWEEN 1 AND 262144", name=op.f("ck_site_logo_size")),
        sa.CheckConstraint(
            "length(small_logo) BETWEEN 1 AND 262144", name=op.f("ck_site_small_logo_size")
        ),
        sa.CheckConstraint(
            "(logo_id IS NULL) = (logo IS NULL) AND (logo IS NULL) = (small_logo IS NULL)",
            name=op.f("ck_site_logo"),
        ),
        sa.PrimaryKeyConstraint("id", name="pk_site"),
    )


def downgrade() -> None:
    op.drop_table("site")
