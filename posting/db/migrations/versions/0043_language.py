"""The language of the site, and those of mails to members."""

from alembic import op

revision = "0043"
down_revision = "0042"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for table in ("site", "mailboxes"):
        # SQLite adds a check with its column only.
        rule = f"CONSTRAINT ck_{table}_language_length CHECK (length(language) BETWEEN 2 AND 16)"
        op.execute(f"ALTER TABLE {table} ADD COLUMN language VARCHAR(16) {rule}")


def downgrade() -> None:
    for table in ("mailboxes", "site"):
        op.drop_column(table, "language")
