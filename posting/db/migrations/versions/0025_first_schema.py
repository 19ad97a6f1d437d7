"""The first schema.

Its number is 0025, so that databases and archives of this schema from before version 1.0.0 can be
used. The columns are in the order of these databases.
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

from posting.db.types import new_id

revision = "0025"
down_revision = None
branch_labels = None
depends_on = None


def bytewise(length: int) -> sa.String:
    """Return the type of a text that Postgres compares byte by byte, as SQLite does."""
    return sa.String(length).with_variant(sa.String(length, collation="C"), "postgresql")


IDENTIFIER = bytewise(21)
TIMESTAMP = sa.DateTime(timezone=True)

# The search indexes of posts and of comments.
SEARCH_ON_SQLITE = (
    "CREATE VIRTUAL TABLE {name}_search USING fts5 ({texts}, author, {name}_id UNINDEXED, "
    "version UNINDEXED, content='', contentless_delete=1, contentless_unindexed=1, "
    "tokenize=\"ascii tokenchars '-_'\")"
)
# The words of a row in 2026, such as 'engine', become '2026/engine', and its month is '2026/#11'.
# So the words of other years are not looked up.
SEARCH_ON_POSTGRES = (
    'CREATE TABLE {name}_search ({name}_id VARCHAR(21) COLLATE "C" NOT NULL, '
    "created_at TIMESTAMP WITH TIME ZONE NOT NULL, version INTEGER NOT NULL, text TEXT NOT NULL, "
    "words TSVECTOR NOT NULL, CONSTRAINT pk_{name}_search PRIMARY KEY ({name}_id), "
    "CONSTRAINT fk_{name}_search_{name}_id_{name}s FOREIGN KEY ({name}_id) "
    "REFERENCES {name}s (id) ON DELETE CASCADE)",
    "CREATE INDEX ix_{name}_search_created_at_{name}_id ON {name}_search (created_at, {name}_id)",
    """
    CREATE FUNCTION {name}_search_lexemes(words tsvector, created_at timestamptz) RETURNS tsvector
    LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
        SELECT array_to_tsvector(
            array_agg(year || '/' || lexeme) || (year || '/#' || month)
        )
        FROM unnest(words),
            cast(extract(year FROM created_at AT TIME ZONE 'UTC') AS int) AS year,
            cast(extract(month FROM created_at AT TIME ZONE 'UTC') AS int) AS month
        GROUP BY year, month
    $$
    """,
    "CREATE INDEX ix_{name}_search_lexemes ON {name}_search "
    "USING gin ({name}_search_lexemes(words, created_at))",
)

# On SQLite, a trigger takes the place of the foreign key from an entry to its comment. It also runs
# when the deletion of a post deletes its comments. The first of the eight rowids that an entry may
# have is made of the milliseconds and the first 15 bits of the id, whose characters have 6.
CHARACTERS = "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz"
A, B, C = (f"(instr('{CHARACTERS}', substr(OLD.id, {place}, 1)) - 1)" for place in (1, 2, 3))
MILLISECONDS = "(unixepoch(substr(OLD.created_at, 1, 19)) * 1000 + substr(OLD.created_at, 21, 3))"
FIRST_ROWID = f"({MILLISECONDS} * 32768 + {A} * 512 + {B} * 8 + {C} / 8)"
DELETE_FROM_SEARCH = """
    CREATE TRIGGER delete_from_search AFTER DELETE ON comments WHEN OLD.content IS NOT NULL BEGIN
        DELETE FROM comment_search
        WHERE rowid >= {first} AND rowid < {first} + 8 AND comment_id = OLD.id;
    END
"""

# A comment that is inserted without a thread, as from an archive, gets the thread of its parent.
ADD_THREAD_ON_SQLITE = """
    CREATE TRIGGER add_thread AFTER INSERT ON comments WHEN NEW.thread_id IS NULL BEGIN
        UPDATE comments SET
            thread_id = coalesce(
                (SELECT thread_id FROM comments WHERE id = NEW.parent_id), NEW.id
            ),
            thread_at = coalesce(
                (SELECT thread_at FROM comments WHERE id = NEW.parent_id), NEW.created_at
            )
        WHERE id = NEW.id;
    END
"""
ADD_THREAD_ON_POSTGRES = (
    """
    CREATE FUNCTION add_thread() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        SELECT parent.thread_id, parent.thread_at INTO NEW.thread_id, NEW.thread_at
        FROM comments AS parent WHERE parent.id = NEW.parent_id;
        NEW.thread_id = coalesce(NEW.thread_id, NEW.id);
        NEW.thread_at = coalesce(NEW.thread_at, NEW.created_at);
        RETURN NEW;
    END $$
    """,
    """
    CREATE TRIGGER add_thread BEFORE INSERT ON comments FOR EACH ROW
    WHEN (NEW.thread_id IS NULL) EXECUTE FUNCTION add_thread()
    """,
)


def upgrade() -> None:
    create_accounts()
    create_posts()
    create_comments()
    create_images()
    create_invitations()
    create_notifications()
    create_changes()
    create_moderation()
    create_limits()
    create_search()


def downgrade() -> None:
    on_postgres = op.get_bind().dialect.name == "postgresql"
    op.execute("DROP VIEW IF EXISTS moderation_acts")  # see 0026
    for name in ("post_search", "comment_search"):
        op.execute(f"DROP TABLE {name}")
        # SQLite 3.53 does not drop this shadow table.
        op.execute(f"DROP TABLE IF EXISTS {name}_content")
        if on_postgres:
            op.execute(f"DROP FUNCTION {name}_lexemes(tsvector, timestamptz)")
    tables = """
        user_search idempotency_keys rate_windows reports acts epochs changes subscriptions
        notifications invitation_uses invitations thumbnails image_data images comments posts
        recovery_codes reset_links tokens sessions users
    """
    for table in tables.split():
        op.drop_table(table)
    if on_postgres:
        op.execute("DROP FUNCTION add_thread()")


def create_accounts() -> None:
    op.create_table(
        "users",
        sa.Column("id", IDENTIFIER, nullable=False),
        sa.Column("username", bytewise(32), nullable=False),
        sa.Column("display_name", sa.String(64)),
        sa.Column("bio", sa.String(500)),
        sa.Column("role", sa.String(16), nullable=False),
        sa.Column("password_hash", sa.String(256), nullable=False),
        sa.Column("created_at", TIMESTAMP, nullable=False),
        sa.Column("suspended_at", TIMESTAMP),
        sa.Column("edited_at", TIMESTAMP),
        sa.Column("suspended_until", TIMESTAMP),
        sa.Column("pending_since", TIMESTAMP),
        sa.Column("application", sa.String(1000)),
        sa.Column("last_seen_at", TIMESTAMP),
        sa.Column("suspension_reason", sa.String(500)),
        sa.PrimaryKeyConstraint("id", name="pk_users"),
        sa.CheckConstraint(
            "length(username) BETWEEN 3 AND 32", name=op.f("ck_users_username_length")
        ),
        sa.CheckConstraint("length(display_name) <= 64", name=op.f("ck_users_display_name_length")),
        sa.CheckConstraint("length(bio) <= 500", name=op.f("ck_users_bio_length")),
        sa.CheckConstraint("role IN ('member', 'moderator')", name=op.f("ck_users_role")),
        sa.CheckConstraint(
            "length(application) BETWEEN 1 AND 1000", name=op.f("ck_users_application_length")
        ),
        sa.CheckConstraint(
            "length(suspension_reason) <= 500", name=op.f("ck_users_suspension_reason_length")
        ),
    )
    op.create_index("uq_users_username", "users", [sa.text("lower(username)")], unique=True)
    create_partial_index(
        "ix_users_pending_since_id", "users", ["pending_since", "id"], "pending_since IS NOT NULL"
    )
    create_partial_index("ix_users_moderators", "users", ["id"], "role = 'moderator'")

    op.create_table(
        "sessions",
        sa.Column("id", IDENTIFIER, nullable=False),
        sa.Column("token_hash", sa.String(64), nullable=False),
        sa.Column("user_id", IDENTIFIER, nullable=False),
        sa.Column("user_agent", sa.String(256), nullable=False),
        sa.Column("created_at", TIMESTAMP, nullable=False),
        sa.Column("last_seen_at", TIMESTAMP, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_sessions"),
        sa.UniqueConstraint("token_hash", name="uq_sessions_token_hash"),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name="fk_sessions_user_id_users", ondelete="CASCADE"
        ),
    )
    op.create_index("ix_sessions_user_id", "sessions", ["user_id"])
    op.create_index("ix_sessions_created_at", "sessions", ["created_at"])

    op.create_table(
        "tokens",
        sa.Column("id", IDENTIFIER, nullable=False),
        sa.Column("user_id", IDENTIFIER, nullable=False),
        sa.Column("token_hash", sa.String(64), nullable=False),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("scope", sa.String(8), nullable=False),
        sa.Column("created_at", TIMESTAMP, nullable=False),
        sa.Column("expires_at", TIMESTAMP, nullable=False),
        sa.Column("last_used_at", TIMESTAMP),
        sa.PrimaryKeyConstraint("id", name="pk_tokens"),
        sa.UniqueConstraint("token_hash", name="uq_tokens_token_hash"),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name="fk_tokens_user_id_users", ondelete="CASCADE"
        ),
        sa.CheckConstraint("scope IN ('read', 'write', 'feed')", name=op.f("ck_tokens_scope")),
    )
    op.create_index("ix_tokens_user_id", "tokens", ["user_id"])
    op.create_index("ix_tokens_expires_at", "tokens", ["expires_at"])

    op.create_table(
        "reset_links",
        sa.Column("user_id", IDENTIFIER, nullable=False),
        sa.Column("secret_hash", sa.String(64), nullable=False),
        sa.Column("expires_at", TIMESTAMP, nullable=False),
        sa.PrimaryKeyConstraint("user_id", name="pk_reset_links"),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name="fk_reset_links_user_id_users", ondelete="CASCADE"
        ),
    )
    op.create_index("ix_reset_links_expires_at", "reset_links", ["expires_at"])

    op.create_table(
        "recovery_codes",
        sa.Column("user_id", IDENTIFIER, nullable=False),
        sa.Column("code_hash", sa.String(64), nullable=False),
        sa.Column("created_at", TIMESTAMP, nullable=False),
        sa.PrimaryKeyConstraint("user_id", "code_hash", name="pk_recovery_codes"),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name="fk_recovery_codes_user_id_users", ondelete="CASCADE"
        ),
    )


def create_posts() -> None:
    op.create_table(
        "posts",
        sa.Column("id", IDENTIFIER, nullable=False),
        sa.Column("author_id", IDENTIFIER),
        sa.Column("title", sa.String(200), nullable=False),
        sa.Column("content", sa.Text, nullable=False),
        sa.Column("comment_count", sa.Integer, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("created_at", TIMESTAMP, nullable=False),
        sa.Column("updated_at", TIMESTAMP, nullable=False),
        sa.Column("last_comment_at", TIMESTAMP),
        sa.Column("image_count", sa.Integer, nullable=False, server_default="0"),
        sa.Column("locked_at", TIMESTAMP),
        sa.Column("pinned_at", TIMESTAMP),
        sa.PrimaryKeyConstraint("id", name="pk_posts"),
        sa.ForeignKeyConstraint(
            ["author_id"], ["users.id"], name="fk_posts_author_id_users", ondelete="SET NULL"
        ),
        sa.CheckConstraint("length(title) BETWEEN 1 AND 200", name=op.f("ck_posts_title_length")),
        sa.CheckConstraint(
            "length(content) BETWEEN 1 AND 100000", name=op.f("ck_posts_content_length")
        ),
        sa.CheckConstraint("comment_count >= 0", name=op.f("ck_posts_comment_count")),
    )
    last_activity = sa.text("coalesce(last_comment_at, created_at)")
    op.create_index("ix_posts_created_at_id", "posts", ["created_at", "id"])
    op.create_index("ix_posts_author_id_created_at_id", "posts", ["author_id", "created_at", "id"])
    op.create_index("ix_posts_last_activity_at_id", "posts", [last_activity, "id"])
    op.create_index(
        "ix_posts_author_id_last_activity_at_id", "posts", ["author_id", last_activity, "id"]
    )
    create_partial_index(
        "ix_posts_pinned_at_id", "posts", ["pinned_at", "id"], "pinned_at IS NOT NULL"
    )


def create_comments() -> None:
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
        sa.Column("thread_id", IDENTIFIER),
        sa.Column("thread_at", TIMESTAMP),
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
    op.create_index(
        "ix_comments_author_id_created_at_id", "comments", ["author_id", "created_at", "id"]
    )
    op.create_index(
        "ix_comments_thread", "comments", ["post_id", "thread_at", "thread_id", "created_at", "id"]
    )
    create_partial_index(
        "ix_comments_created_at_id", "comments", ["created_at", "id"], "content IS NOT NULL"
    )
    create_partial_index(
        "ix_comments_parent_id", "comments", ["parent_id"], "parent_id IS NOT NULL"
    )
    execute_on(sqlite=[ADD_THREAD_ON_SQLITE], postgresql=ADD_THREAD_ON_POSTGRES)


def create_images() -> None:
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
        sa.Column("edited_at", TIMESTAMP),
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
        "thumbnails",
        sa.Column("image_id", IDENTIFIER, nullable=False),
        sa.Column("width", sa.Integer, nullable=False),
        sa.Column("height", sa.Integer, nullable=False),
        sa.Column("data", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("image_id", name="pk_thumbnails"),
        sa.ForeignKeyConstraint(
            ["image_id"], ["images.id"], name="fk_thumbnails_image_id_images", ondelete="CASCADE"
        ),
        sa.CheckConstraint(
            "width BETWEEN 1 AND 320 AND height BETWEEN 1 AND 320",
            name=op.f("ck_thumbnails_dimensions"),
        ),
        sa.CheckConstraint("length(data) BETWEEN 1 AND 20000", name=op.f("ck_thumbnails_size")),
    )


def create_invitations() -> None:
    op.create_table(
        "invitations",
        sa.Column("id", IDENTIFIER, nullable=False),
        sa.Column("created_by_id", IDENTIFIER),
        sa.Column("secret_hash", sa.String(64), nullable=False),
        sa.Column("note", sa.String(100)),
        sa.Column("role", sa.String(16), nullable=False),
        sa.Column("uses", sa.Integer, nullable=False),
        sa.Column("uses_left", sa.Integer, nullable=False),
        sa.Column("created_at", TIMESTAMP, nullable=False),
        sa.Column("expires_at", TIMESTAMP, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_invitations"),
        sa.ForeignKeyConstraint(
            ["created_by_id"],
            ["users.id"],
            name="fk_invitations_created_by_id_users",
            ondelete="CASCADE",
        ),
        sa.CheckConstraint("length(note) <= 100", name=op.f("ck_invitations_note_length")),
        sa.CheckConstraint("role IN ('member', 'moderator')", name=op.f("ck_invitations_role")),
        sa.CheckConstraint("uses BETWEEN 1 AND 100", name=op.f("ck_invitations_uses")),
        sa.CheckConstraint("uses_left BETWEEN 0 AND uses", name=op.f("ck_invitations_uses_left")),
    )
    op.create_index("ix_invitations_created_at_id", "invitations", ["created_at", "id"])
    op.create_index(
        "ix_invitations_created_by_id_created_at_id",
        "invitations",
        ["created_by_id", "created_at", "id"],
    )
    op.create_index("ix_invitations_expires_at", "invitations", ["expires_at"])

    op.create_table(
        "invitation_uses",
        sa.Column("user_id", IDENTIFIER, nullable=False),
        sa.Column("invitation_id", IDENTIFIER, nullable=False),
        sa.Column("invited_by_id", IDENTIFIER),
        sa.PrimaryKeyConstraint("user_id", name="pk_invitation_uses"),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name="fk_invitation_uses_user_id_users", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["invited_by_id"],
            ["users.id"],
            name="fk_invitation_uses_invited_by_id_users",
            ondelete="SET NULL",
        ),
    )
    op.create_index("ix_invitation_uses_invitation_id", "invitation_uses", ["invitation_id"])
    op.create_index("ix_invitation_uses_invited_by_id", "invitation_uses", ["invited_by_id"])


def create_notifications() -> None:
    op.create_table(
        "notifications",
        sa.Column("user_id", IDENTIFIER, nullable=False),
        sa.Column("created_at", TIMESTAMP, nullable=False),
        sa.Column("id", IDENTIFIER, nullable=False),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("actor_id", IDENTIFIER),
        sa.Column("post_id", IDENTIFIER),
        sa.Column("comment_id", IDENTIFIER),
        sa.Column("reason", sa.String(500)),
        sa.Column("excerpt", sa.String(300)),
        sa.Column("read_at", TIMESTAMP),
        sa.PrimaryKeyConstraint("user_id", "created_at", "id", name="pk_notifications"),
        sa.ForeignKeyConstraint(
            ["post_id"], ["posts.id"], name="fk_notifications_post_id_posts", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["comment_id"],
            ["comments.id"],
            name="fk_notifications_comment_id_comments",
            ondelete="CASCADE",
        ),
        sa.CheckConstraint(
            "length(kind) BETWEEN 1 AND 32", name=op.f("ck_notifications_kind_length")
        ),
        sa.CheckConstraint(
            "post_id IS NULL OR comment_id IS NULL", name=op.f("ck_notifications_subject")
        ),
        sa.CheckConstraint("length(reason) <= 500", name=op.f("ck_notifications_reason_length")),
        sa.CheckConstraint("length(excerpt) <= 300", name=op.f("ck_notifications_excerpt_length")),
        sqlite_with_rowid=False,
    )
    unread = ["user_id", "created_at", "id", "read_at"]
    create_partial_index("ix_notifications_unread", "notifications", unread, "read_at IS NULL")
    create_partial_index(
        "ix_notifications_read_at", "notifications", ["read_at"], "read_at IS NOT NULL"
    )
    create_partial_index(
        "ix_notifications_actor_id", "notifications", ["actor_id"], "actor_id IS NOT NULL"
    )
    for subject in ("post_id", "comment_id"):
        create_partial_index(
            f"ix_notifications_{subject}_user_id",
            "notifications",
            [subject, "user_id"],
            f"{subject} IS NOT NULL",
        )

    op.create_table(
        "subscriptions",
        sa.Column("post_id", IDENTIFIER, nullable=False),
        sa.Column("user_id", IDENTIFIER, nullable=False),
        sa.Column("level", sa.String(8), nullable=False),
        sa.PrimaryKeyConstraint("post_id", "user_id", name="pk_subscriptions"),
        sa.ForeignKeyConstraint(
            ["post_id"], ["posts.id"], name="fk_subscriptions_post_id_posts", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name="fk_subscriptions_user_id_users", ondelete="CASCADE"
        ),
        sa.CheckConstraint("level IN ('all', 'muted')", name=op.f("ck_subscriptions_level")),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_subscriptions_user_id", "subscriptions", ["user_id"])


def create_changes() -> None:
    op.create_table(
        "changes",
        sa.Column(
            "seq",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            sa.Identity(),  # on Postgres, because a SERIAL needs privileges on a sequence
            nullable=False,
        ),
        sa.Column("transaction_id", sa.BigInteger),
        sa.Column("kind", sa.String(8), nullable=False),
        sa.Column("id", IDENTIFIER, nullable=False),
        sa.Column("post_id", IDENTIFIER, nullable=False),
        sa.Column("change", sa.String(8), nullable=False),
        sa.Column("at", TIMESTAMP, nullable=False),
        sa.PrimaryKeyConstraint("seq", name="pk_changes"),
        sa.CheckConstraint("kind IN ('post', 'comment', 'image')", name=op.f("ck_changes_kind")),
        sa.CheckConstraint(
            "change IN ('created', 'edited', 'deleted')", name=op.f("ck_changes_change")
        ),
    )
    create_partial_index(
        "ix_changes_transaction_id_seq",
        "changes",
        ["transaction_id", "seq"],
        "transaction_id IS NOT NULL",
    )

    epochs = op.create_table(
        "epochs",
        sa.Column("id", IDENTIFIER, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_epochs"),
    )
    op.execute(sa.insert(epochs).values(id=new_id()))


def create_moderation() -> None:
    op.create_table(
        "acts",
        sa.Column("id", IDENTIFIER, nullable=False),
        sa.Column("moderator", sa.String(32), nullable=False),
        sa.Column("moderator_id", IDENTIFIER),
        sa.Column("action", sa.String(16), nullable=False),
        sa.Column("target_kind", sa.String(16), nullable=False),
        sa.Column("target_id", IDENTIFIER, nullable=False),
        sa.Column("user_id", IDENTIFIER),
        sa.Column("reason", sa.String(500)),
        sa.Column("created_at", TIMESTAMP, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_acts"),
        sa.CheckConstraint("length(reason) <= 500", name=op.f("ck_acts_reason_length")),
    )
    op.create_index("ix_acts_created_at_id", "acts", ["created_at", "id"])
    op.create_index("ix_acts_user_id_created_at_id", "acts", ["user_id", "created_at", "id"])

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
    is_open = "closed_at IS NULL"
    create_partial_index("ix_reports_created_at_id", "reports", ["created_at", "id"], is_open)
    create_partial_index(
        "ix_reports_closed_at_id", "reports", ["closed_at", "id"], "closed_at IS NOT NULL"
    )
    target = ["reporter_id", "target_kind", "target_id"]
    create_partial_index("uq_reports_open", "reports", target, is_open, unique=True)
    create_partial_index("ix_reports_target_id", "reports", ["target_id"], is_open)
    create_partial_index("ix_reports_post_id", "reports", ["post_id"], is_open)
    op.create_index("ix_reports_reporter_id_created_at", "reports", ["reporter_id", "created_at"])
    op.create_index("ix_reports_author_id_closed_at", "reports", ["author_id", "closed_at"])


def create_limits() -> None:
    op.create_table(
        "rate_windows",
        sa.Column("key", sa.String(32), nullable=False),
        sa.Column("hits", sa.Integer, nullable=False),
        sa.Column("ends_at", TIMESTAMP, nullable=False),
        sa.PrimaryKeyConstraint("key", name="pk_rate_windows"),
    )
    op.create_index("ix_rate_windows_ends_at", "rate_windows", ["ends_at"])

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


def create_search() -> None:
    for name, texts in (("post", "title, content"), ("comment", "content")):
        execute_on(
            sqlite=[SEARCH_ON_SQLITE.format(name=name, texts=texts)],
            postgresql=[statement.format(name=name) for statement in SEARCH_ON_POSTGRES],
        )
    execute_on(sqlite=[DELETE_FROM_SEARCH.format(first=FIRST_ROWID)], postgresql=[])

    op.create_table(
        "user_search",
        sa.Column("name", bytewise(64), nullable=False),
        sa.Column("user_id", IDENTIFIER, nullable=False),
        sa.PrimaryKeyConstraint("name", "user_id", name="pk_user_search"),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name="fk_user_search_user_id_users", ondelete="CASCADE"
        ),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_user_search_user_id", "user_search", ["user_id"])


def create_partial_index(
    name: str, table: str, columns: list[str], where: str, *, unique: bool = False
) -> None:
    condition = sa.text(where)
    op.create_index(
        name, table, columns, unique=unique, sqlite_where=condition, postgresql_where=condition
    )


def execute_on(*, sqlite: Sequence[str], postgresql: Sequence[str]) -> None:
    """Execute the statements for the database in use."""
    on_sqlite = op.get_bind().dialect.name == "sqlite"
    for statement in sqlite if on_sqlite else postgresql:
        op.execute(statement)
