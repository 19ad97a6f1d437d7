"""Migrations: upgrades, downgrades, and the same schema as the models."""

import re
from contextlib import nullcontext
from datetime import timedelta
from itertools import pairwise

import flask_migrate
import pytest
import sqlalchemy as sa
from alembic.migration import MigrationContext
from alembic.operations import Operations
from alembic.script import ScriptDirectory

from posting import create_app
from posting.accounts.models import Act, RecoveryCode, ResetLink, Session, Token, User
from posting.changes.models import Change
from posting.config import StartError
from posting.db.base import Base, db
from posting.db.migrations.revisions import FOLDER, head_revision, is_current, known_revisions
from posting.db.migrations.upgrades import schema_change
from posting.db.transactions import transaction
from posting.db.types import UtcDateTime, new_id, now
from posting.invitations.models import Invitation, InvitationUse
from posting.moderation.models import Report
from posting.notifications.models import Notification, Subscription
from posting.ops import archive
from posting.posts.models import Post
from posting.testbed import running_app
from posting.web.limits import RateWindow
from tests.conftest import POSTGRES
from tests.helpers.archives import example_archive, write_archive

# SQLAlchemy cannot reflect SQLite's index on lower(username); `indexes` below reads its SQL.
pytestmark = pytest.mark.filterwarnings("ignore:Skipped unsupported reflection")
SEARCH_TABLES = ("post_search", "comment_search", "user_search")  # which are no models
# A deferred constraint would be checked by the COMMIT of a whole group.
FOREIGN_OPTIONS = ("ondelete", "deferrable", "initially")
UNREACHABLE = "postgresql://postgres@127.0.0.1:9/nothing"
NAMES = re.compile(
    r"(pk|uq|ix|ck|fk)_(users|sessions|tokens|posts|comments|images|image_data|thumbnails|idempotency_keys|rate_windows|acts|post_search|comment_search|user_search|invitations|invitation_uses|reset_links|recovery_codes|notifications|subscriptions|changes|epochs|reports)(_\w+)?|alembic_version_pkc"
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
        connection.exec_driver_sql("DROP VIEW moderation_acts")
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
        if newer == "0002":  # its downgrade drops the comments
            before["posts"] = [row | {"comment_count": 0} for row in before["posts"]]
        flask_migrate.downgrade(revision=older)
        left = rows(db.engine)
        assert schema(db.engine) == fresh[older]
        assert left == only_columns_of(before, left)
        flask_migrate.upgrade(revision=newer)
        assert schema(db.engine) == fresh[newer]
        assert left == only_columns_of(rows(db.engine), left)
        flask_migrate.downgrade(revision=older)


def fill(path):
    """Add the rows of the example archive, and some to the tables that it leaves empty."""
    archive.import_from_path(write_archive(path, *example_archive()))
    ada = db.session.scalars(sa.select(User).where(User.username == "ada")).one()
    ada.suspended_at = ada.suspended_until = now()
    post = db.session.scalars(sa.select(Post)).one()
    db.session.add_all(
        [
            Notification(user_id=ada.id, created_at=now(), id=new_id(), kind="x", post_id=post.id),
            Subscription(user_id=ada.id, post_id=post.id, level="all"),
            Change(kind="post", id=post.id, post_id=post.id, change="created", at=now()),
            Report(
                reporter_id=ada.id,
                target_kind="post",
                target_id=post.id,
                excerpt="x",
                target_updated_at=now(),
                reason="x",
            ),
            Session(user=ada, token_hash="x", user_agent="x"),
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
    """Return the rows of each table, and of each view for the former version."""
    with engine.connect() as connection:
        inspector = sa.inspect(connection)
        return {
            table: [
                dict(row)
                for row in connection.execute(
                    sa.text(f"SELECT * FROM {table} ORDER BY 1")
                ).mappings()
            ]
            for table in inspector.get_table_names() + inspector.get_view_names()
            if table != "alembic_version" and not table.startswith(SEARCH_TABLES)
        }


def only_columns_of(found, others):
    """Return the found rows, with only the tables and columns that `others` has."""
    return {
        table: [{name: row[name] for name in kept[0]} for row in found[table]]
        for table, kept in others.items()
        if kept
    }


def test_empty_display_names_and_bios_become_null(migrated):
    flask_migrate.downgrade(revision="0009")
    profiles = [("", ""), ("Bob", ""), ("", "Hello."), (None, " ")]
    users = [
        {"username": f"user-{n}", "password_hash": "x", "display_name": name, "bio": bio}
        for n, (name, bio) in enumerate(profiles)
    ]
    with transaction() as connection:
        connection.execute(sa.insert(User), users)
    flask_migrate.upgrade()
    found = sa.select(User.display_name, User.bio).order_by(User.username)
    assert db.session.execute(found).all() == [
        (None, None),
        ("Bob", None),
        (None, "Hello."),
        (None, " "),
    ]


ID, POST_ID, MODERATOR_ID = (letter * 21 for letter in "apm")
# `act`, `target` and `moderator_id` in 0010; `action`, `target_kind`, `target_id` and `user_id` in
# 0011.
CONVERTED_ACTS = [
    (("deleted", f"post {POST_ID} of {ID}", MODERATOR_ID), ("deleted", "post", POST_ID, ID)),
    (("deleted", f"comment {POST_ID}", MODERATOR_ID), ("deleted", "comment", POST_ID, None)),
    (("password reset", f"user {ID}", None), ("password reset", "user", ID, ID)),
]
FORMER_ACTS = sa.table(
    "moderation_acts",
    *(sa.column(name) for name in ("id", "moderator", "moderator_id", "act", "target")),
    sa.column("created_at", UtcDateTime()),
)


def former_acts():
    """Return new rows of the former table."""
    return [
        {
            "id": new_id(),
            "moderator": "grace",
            "moderator_id": moderator_id,
            "act": act,
            "target": target,
            "created_at": now(),
        }
        for (act, target, moderator_id), _ in CONVERTED_ACTS
    ]


def test_the_moderation_log_is_converted(migrated):
    """The former version still adds to it between the upgrade and its restart."""
    flask_migrate.downgrade(revision="0010")
    before, meanwhile = former_acts(), former_acts()
    with transaction() as connection:
        connection.execute(sa.insert(FORMER_ACTS), before)
    flask_migrate.upgrade(revision="0011")
    with transaction() as connection:
        for row in meanwhile:
            connection.execute(sa.insert(FORMER_ACTS).values(row))
    acts = {act.id: act for act in db.session.scalars(sa.select(Act))}
    assert acts.keys() == {row["id"] for row in before + meanwhile}
    for row, (_, expected) in zip(before + meanwhile, CONVERTED_ACTS * 2, strict=True):
        act = acts[row["id"]]
        assert (act.action, act.target_kind, act.target_id, act.user_id) == expected
        assert (act.moderator, act.moderator_id) == (row["moderator"], row["moderator_id"])
        assert (act.created_at, act.reason) == (row["created_at"], None)
    db.session.remove()
    flask_migrate.downgrade(revision="0010")
    with db.engine.connect() as connection:
        left = connection.execute(sa.select(FORMER_ACTS)).mappings().all()
    assert sorted(map(dict, left), key=str) == sorted(before + meanwhile, key=str)


def test_a_downgrade_deletes_the_tokens_for_feeds(migrated):
    ada = User(username="ada", password_hash="x")
    tokens = [
        Token(user=ada, token_hash=scope, name="x", scope=scope, expires_at=now())
        for scope in ("read", "write", "feed")
    ]
    db.session.add_all(tokens)
    db.session.commit()
    db.session.remove()
    flask_migrate.downgrade(revision="0013")
    flask_migrate.upgrade()
    assert set(db.session.scalars(sa.select(Token.scope))) == {"read", "write"}


def test_an_upgrade_finds_out_when_users_were_last_seen(migrated):
    flask_migrate.downgrade(revision="0020")
    columns = {name: sa.column(name) for name in ("id", "username", "password_hash", "role")}
    users = sa.table("users", *columns.values(), sa.column("created_at", UtcDateTime()))
    names = ("by-session", "by-token", "never-seen", "no-longer-signed-in")
    ids = {name: new_id() for name in names}
    by_session, by_token, *_ = ids.values()
    hour, time = timedelta(hours=1), now()
    sessions = [
        {"user_id": id, "token_hash": hash_, "user_agent": "x", "last_seen_at": time - age}
        for id, hash_, age in (
            (by_session, "a", 2 * hour), (by_session, "b", hour), (by_token, "c", 9 * hour)
        )
    ]  # fmt: skip
    tokens = [
        {"user_id": id, "token_hash": hash_, "name": "x", "scope": "read", "expires_at": time}
        | {"last_used_at": used_at}
        for id, hash_, used_at in (
            (by_session, "a", None), (by_token, "b", time), (ids["never-seen"], "c", None)
        )
    ]  # fmt: skip
    with transaction() as connection:
        row = {"password_hash": "x", "role": "member", "created_at": time}
        accounts = [row | {"id": id, "username": name} for name, id in ids.items()]
        connection.execute(sa.insert(users), accounts)
        connection.execute(sa.insert(Session), sessions)
        connection.execute(sa.insert(Token), tokens)
    flask_migrate.upgrade()
    seen = dict(db.session.execute(sa.select(User.username, User.last_seen_at)).all())
    expected = {"by-session": time - hour, "by-token": time}
    assert seen == dict.fromkeys(names) | expected


@pytest.mark.parametrize("length", [500, 501])
def test_the_reason_of_an_act_is_limited(migrated, length):
    act = {"moderator": "grace", "action": "deleted", "target_kind": "post", "target_id": POST_ID}
    db.session.add(Act(**act, reason="x" * length))
    with nullcontext() if length == 500 else pytest.raises(sa.exc.DBAPIError):
        db.session.commit()


def test_the_former_version_refuses_accounts_that_nobody_has_approved(migrated):
    db.session.add(User(username="ada", password_hash="x", pending_since=now()))
    db.session.add(User(username="bob", password_hash="x"))
    db.session.commit()
    flask_migrate.downgrade(revision="0013")
    found = sa.text("SELECT username FROM users WHERE suspended_at IS NULL")
    assert db.session.scalars(found).all() == ["bob"]


def test_files_are_named_by_their_revisions():
    script = ScriptDirectory(str(FOLDER))
    assert head_revision() == script.get_current_head()
    assert known_revisions() == {each.revision for each in script.walk_revisions()}


def test_a_second_upgrade_does_nothing(flask, migrated, caplog):
    caplog.set_level("INFO")
    up_to_date = f"The database schema is up to date ({head_revision()}).\n"
    assert flask("db", "upgrade", on=migrated) == (0, up_to_date)
    assert "Running upgrade" not in caplog.text


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
