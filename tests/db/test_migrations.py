"""Migrations: upgrades, downgrades, and the same schema as the models."""

import re
from contextlib import nullcontext
from itertools import pairwise

import flask_migrate
import pytest
import sqlalchemy as sa
from alembic.migration import MigrationContext
from alembic.operations import Operations
from alembic.script import ScriptDirectory

from posting import create_app
from posting.accounts.models import RecoveryCode, ResetLink, Session, Token, User
from posting.accounts.store import create_account, insert_user
from posting.avatars.models import Avatar
from posting.changes.models import Change
from posting.changes.store import purge_changes, record_change
from posting.config import StartError
from posting.db.base import Base, db
from posting.db.engine import close_connections
from posting.db.migrations.revisions import FOLDER, head_revision, is_current, known_revisions
from posting.db.migrations.upgrades import schema_change
from posting.db.transactions import transaction, unit_of_work
from posting.db.types import new_id, now
from posting.images.models import Image, ImageSize
from posting.invitations.models import Invitation, InvitationUse
from posting.mail.models import FormerAddress, Mailbox, MailLink
from posting.moderation.models import Act, Report
from posting.notifications.models import Notification, Seen, Subscription
from posting.ops.archive.importing import import_from_path
from posting.outbox.models import Outgoing
from posting.posts.models import Post
from posting.push.models import PushSubscription
from posting.reactions.models import Reaction
from posting.site.models import Site
from posting.testbed import running_app
from posting.topics.models import PostTopic, Topic
from posting.web.limits import RateWindow
from posting.webhooks.models import Delivery, Webhook
from tests.conftest import POSTGRES
from tests.helpers.archives import example_archive, write_archive
from tests.helpers.assertions import assert_indexed
from tests.helpers.clock import shifted_clock
from tests.helpers.doctor import unstarted

# SQLAlchemy cannot reflect SQLite's index on lower(username); `indexes` below reads its SQL.
pytestmark = pytest.mark.filterwarnings("ignore:Skipped unsupported reflection")
SEARCH_TABLES = ("post_search", "comment_search", "user_search")  # which are no models
# A deferred constraint is checked by COMMIT, where no view can say what is wrong.
FOREIGN_OPTIONS = ("ondelete", "deferrable", "initially")
UNREACHABLE = "postgresql://postgres@127.0.0.1:9/nothing"
NAMES = re.compile(
    r"(pk|uq|ix|ck|fk)_(users|avatars|sessions|tokens|posts|post_topics|topics|comments|files|file_data|images|image_data|image_sizes|thumbnails|idempotency_keys|rate_windows|acts|post_search|comment_search|user_search|invitations|invitation_uses|reset_links|recovery_codes|mailboxes|former_addresses|mail_links|push_subscriptions|webhooks|deliveries|site|notifications|subscriptions|seen|reactions|outbox|changes|epochs|reports)(_\w+)?|alembic_version_pkc"
)


@pytest.fixture
def migrated(empty_url):
    """An app on a database created by the migrations."""
    with running_app(empty_url, {}) as app, app.app_context():
        yield app
        db.session.remove()


def schema(engine):
    """Return the schema of a database, for comparison with another."""
    inspector = sa.inspect(engine)
    return {
        table: {
            "columns": {
                column["name"]: (str(column["type"]), column["nullable"], column["default"])
                for column in inspector.get_columns(table)
            },
            "key": inspector.get_pk_constraint(table)["name"],
            "foreign": {
                (
                    *(key["name"], *key["constrained_columns"]),
                    *(key["options"].get(name) for name in FOREIGN_OPTIONS),
                )
                for key in inspector.get_foreign_keys(table)
            },
            "unique": {key["name"] for key in inspector.get_unique_constraints(table)},
            "checks": {
                (check["name"], re.sub(r"[()\s]|::\w+( varying)?", "", check["sqltext"]))
                for check in inspector.get_check_constraints(table)
            },
        }
        for table in inspector.get_table_names()
        if table != "alembic_version" and not table.startswith(SEARCH_TABLES)
    } | {"indexes": indexes(engine)}


def indexes(engine):
    statement = (
        "SELECT indexdef FROM pg_indexes WHERE schemaname = 'public'"
        if engine.dialect.name == "postgresql"
        else "SELECT sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL"
    )
    with engine.connect() as connection:
        found = connection.exec_driver_sql(statement).scalars()
        others = ("alembic", *SEARCH_TABLES)
        return {sql for sql in found if not any(name in sql for name in others)}


def test_the_migrations_create_the_schema_of_the_models(migrated):
    migrated_schema = schema(db.engine)
    with transaction() as connection:
        for table in SEARCH_TABLES:
            connection.exec_driver_sql(f"DROP TABLE {table}")
    Base.metadata.drop_all(db.engine)
    Base.metadata.create_all(db.engine)
    assert migrated_schema == schema(db.engine)
    assert migrated_schema.keys() == set(Base.metadata.tables) | {"indexes"}


def test_all_constraints_follow_the_naming_convention(migrated):
    inspector = sa.inspect(db.engine)
    for table in inspector.get_table_names():
        constraints = [
            inspector.get_pk_constraint(table),
            *inspector.get_foreign_keys(table),
            *inspector.get_unique_constraints(table),
            *inspector.get_check_constraints(table),
        ]
        for constraint in constraints:
            assert NAMES.fullmatch(constraint["name"] or "alembic_version_pkc"), constraint
    assert all(NAMES.search(sql) for sql in indexes(db.engine))


def test_a_full_downgrade_can_be_upgraded_again(flask, migrated):
    assert flask("db", "downgrade", "--yes", "base", on=migrated)[0] == 0
    assert sa.inspect(db.engine).get_table_names() == ["alembic_version"]
    assert flask("db", "upgrade", on=migrated)[0] == 0
    assert is_current()


def test_each_migration_goes_down_and_up_with_rows(migrated, tmp_path):
    """Schemas are restored exactly, and so are all rows that the migration does not concern."""
    versions = ["base", *sorted(path.stem[:4] for path in (FOLDER / "versions").glob("0*.py"))]
    flask_migrate.downgrade(revision="base")
    fresh = {"base": schema(db.engine)}
    for version in versions[1:]:
        flask_migrate.upgrade(revision=version)
        fresh[version] = schema(db.engine)
    fill(tmp_path / "archive")
    for older, newer in reversed([*pairwise(versions)]):
        before = rows(db.engine)
        assert all(before.values())
        flask_migrate.downgrade(revision=older)
        left = rows(db.engine)
        assert schema(db.engine) == fresh[older]
        assert left == only_columns_of(before, left)
        flask_migrate.upgrade(revision=newer)
        assert schema(db.engine) == fresh[newer]
        assert left == only_columns_of(rows(db.engine), left)
        flask_migrate.downgrade(revision=older)


def test_a_downgrade_finishes_the_deletion_of_posts(migrated, tmp_path):
    fill(tmp_path / "archive")
    db.session.execute(sa.update(Post).values(deleted_at=now()))
    db.session.commit()
    flask_migrate.downgrade(revision="0025")
    left = rows(db.engine)
    parts = "posts", "comments", "images", "image_data", "thumbnails", "subscriptions"
    assert not any(left[table] for table in (*parts, "notifications"))
    assert left["users"]
    flask_migrate.upgrade()
    assert_indexed(db.session.connection())


def fill(path):
    """Add the rows of the example archive, and some to the tables that it leaves empty."""
    import_from_path(write_archive(path, *example_archive()))
    ada = db.session.scalars(sa.select(User).where(User.username == "ada")).one()
    ada.suspended_at = ada.suspended_until = now()
    ada.avatar_id = new_id()
    post = db.session.scalars(sa.select(Post)).one()
    image = db.session.scalars(sa.select(Image)).one()
    webhook = Webhook(
        id=new_id(), creator_id=ada.id, url="https://x.example", events="x", secret="x", cursor="x"
    )
    session = Session(id=new_id(), user=ada, token_hash="x", user_agent="x")
    outgoing = Outgoing(id=new_id(), channel="mail", kind="x", user_id=ada.id, rank=0)
    topic = Topic(id=new_id(), name="x", color="red")
    db.session.add_all([webhook, session, outgoing, topic])
    db.session.flush()  # before the rows that refer to them, which have no relationships
    db.session.add_all(
        [
            Notification(user_id=ada.id, created_at=now(), id=new_id(), kind="x", post_id=post.id),
            FormerAddress(id=outgoing.id, user_id=ada.id, address="ada@example.net"),
            Mailbox(user_id=ada.id, address="ada@example.org", language="de"),
            PushSubscription(
                user_id=ada.id, session_id=session.id, endpoint="https://x", p256dh="x", auth="x"
            ),
            Delivery(webhook_id=webhook.id, event="x", object_id=post.id, happened_at=now()),
            MailLink(
                secret_hash="x" * 64,
                user_id=ada.id,
                purpose="password",
                address="ada@example.org",
                expires_at=now(),
            ),
            Subscription(user_id=ada.id, post_id=post.id, level="all"),
            Site(
                name="The Loom",
                language="de",
                **{"logo_id": new_id(), "logo": b"x", "small_logo": b"x"},
                **{"cover_id": new_id(), "cover": b"x", "small_cover": b"x"},
            ),
            Seen(user_id=ada.id, post_id=post.id, until=now(), seen_at=now()),
            Reaction(user_id=ada.id, post_id=post.id, text_id=post.id, name="heart"),
            PostTopic(post_id=post.id, topic_id=topic.id, created_at=now(), last_activity_at=now()),
            ImageSize(image_id=image.id, side=640, width=1, height=1, data=b"x"),
            Change(kind="post", id=post.id, post_id=post.id, change="created", at=now()),
            Report(
                reporter_id=ada.id,
                target_kind="post",
                target_id=post.id,
                excerpt="x",
                target_updated_at=now(),
                reason="x",
            ),
            Avatar(id=ada.avatar_id, user_id=ada.id, data=b"x", small=b"x"),
            Token(user=ada, token_hash="x", name="x", scope="read", expires_at=now()),
            RateWindow(key="x", hits=1, ends_at=now()),
            Invitation(
                created_by=ada, secret_hash="x", note="x", uses=1, uses_left=0, expires_at=now()
            ),
            InvitationUse(user_id=ada.id, invitation_id=new_id(), invited_by_id=ada.id),
            ResetLink(user_id=ada.id, secret_hash="x", expires_at=now()),
            RecoveryCode(user_id=ada.id, code_hash="x"),
            Act(
                moderator="grace",
                moderator_id=new_id(),
                action="deleted",
                target_kind="post",
                target_id=new_id(),
                user_id=ada.id,
            ),
        ]
    )
    db.session.commit()


def rows(engine):
    """Return the rows of each table."""
    with engine.connect() as connection:
        inspector = sa.inspect(connection)
        return {
            table: [
                dict(row)
                for row in connection.execute(
                    sa.text(f"SELECT * FROM {table} ORDER BY 1")
                ).mappings()
            ]
            for table in inspector.get_table_names()
            if table != "alembic_version" and not table.startswith(SEARCH_TABLES)
        }


def only_columns_of(found, others):
    """Return the found rows, with only the tables and columns that `others` has."""
    return {
        table: [{name: row[name] for name in kept[0]} for row in found[table]]
        for table, kept in others.items()
        if kept
    }


@pytest.mark.parametrize("length", [500, 501])
def test_the_reason_of_an_act_is_limited(migrated, length):
    act = {"moderator": "grace", "action": "deleted", "target_kind": "post", "target_id": "p" * 21}
    db.session.add(Act(**act, reason="x" * length))
    with nullcontext() if length == 500 else pytest.raises(sa.exc.DBAPIError):
        db.session.commit()


def test_a_jump_after_the_first_upgrade_deletes_no_application_and_no_change(migrated):
    with unit_of_work():
        insert_user(username="hopeful", password_hash="x", pending_since=now())
        record_change("user", new_id(), None, "edited")
    with shifted_clock(days=40), unit_of_work():
        create_account(username="member", password_hash="x")
        record_change("user", new_id(), None, "edited")
        purge_changes()
    assert set(db.session.scalars(sa.select(User.username))) == {"hopeful", "member"}
    assert db.session.scalar(sa.select(sa.func.count(Change.seq))) == 2


def test_files_are_named_by_their_revisions():
    script = ScriptDirectory(str(FOLDER))
    assert head_revision() == script.get_current_head()
    assert known_revisions() == {each.revision for each in script.walk_revisions()}


def test_an_upgrade_prints_one_line_whether_it_changes_the_schema_or_not(empty_url):
    app = unstarted(DATABASE_URL=empty_url)

    def output(*arguments):
        return app.test_cli_runner().invoke(args=["db", *arguments]).output

    for _ in range(2):
        up_to_date = f"The database schema is up to date ({head_revision()}).\n"
        assert output("upgrade") == up_to_date
    assert output("downgrade", "--yes", "base") == "The database schema is empty.\n"
    with app.app_context():
        close_connections()


def test_a_rebuilt_parent_keeps_its_children(migrated):
    db.session.add(User(id="a" * 21, username="ada", password_hash="x"))
    db.session.flush()
    db.session.add(Post(title="x", content="x", author_id="a" * 21))
    db.session.commit()
    with schema_change(db.engine) as connection:
        operations = Operations(MigrationContext.configure(connection))
        with operations.batch_alter_table("users", recreate="always" if not POSTGRES else "auto"):
            pass
    assert db.session.scalar(sa.select(Post.author_id)) == "a" * 21
    db.session.add(Post(title="x", content="x", author_id="b" * 21))
    with pytest.raises(sa.exc.IntegrityError):
        db.session.flush()


@pytest.mark.skipif(bool(POSTGRES), reason="Postgres always enforces foreign keys")
def test_an_upgrade_that_breaks_foreign_keys_is_rolled_back(migrated):
    with pytest.raises(StartError, match="foreign keys"), schema_change(db.engine) as connection:
        connection.execute(
            sa.insert(Post).values(title="x", content="x", author_id="b" * 21, version=1)
        )
    assert db.session.scalar(sa.select(sa.func.count(Post.id))) == 0


def test_a_database_in_memory_has_the_current_schema():
    app = create_app({"TESTING": True, "DATABASE_URL": "sqlite://"})
    with app.app_context():
        assert is_current()
    assert app.test_client().get("/readyz").status_code == 200


@pytest.mark.skipif(bool(POSTGRES), reason="Postgres has no such file")
def test_a_mistake_in_a_migration_is_not_a_problem_of_the_file(migrated):
    with (
        pytest.raises(sa.exc.OperationalError, match="no such table"),
        schema_change(db.engine) as connection,
    ):
        connection.exec_driver_sql("DELETE FROM missing")
