"""Migrations: upgrades, downgrades, and the same schema as the models."""

import os
import re
import subprocess
import sys
from itertools import pairwise

import flask_migrate
import pytest
import sqlalchemy as sa
from alembic.migration import MigrationContext
from alembic.operations import Operations
from alembic.script import ScriptDirectory

from posting import create_app
from posting.config import StartError
from posting.db.engine import Base, db
from posting.db.migrations import (
    FOLDER,
    VERSION_TABLE,
    head_revision,
    is_current,
    known_revisions,
    schema_change,
)
from posting.db.models import ModerationAction, Post, RateWindow, Session, Token, User
from posting.db.types import now
from posting.domain.users import find_account
from posting.ops import archive
from posting.testbed import running_app
from tests.conftest import POSTGRES
from tests.helpers import ROOT
from tests.helpers.archives import example_archive, write_archive

# SQLAlchemy cannot reflect SQLite's index on lower(username); `indexes` below reads its SQL.
pytestmark = pytest.mark.filterwarnings("ignore:Skipped unsupported reflection")
NAMES = re.compile(
    r"(pk|uq|ix|ck|fk)_(users|sessions|tokens|posts|comments|images|image_data|idempotency_keys|rate_windows|moderation_acts|post_search)(_\w+)?|alembic_version_pkc"
)


@pytest.fixture
def start(empty_url, tmp_path):
    """Run Python in the root folder with an empty database, and return the completed process."""

    def start(*arguments, **environment):
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=ROOT,
            env=os.environ | {"POSTING_DATABASE_URL": empty_url} | environment,
            capture_output=True,
            text=True,
            check=False,
        )

    return start


@pytest.fixture
def flask(start):
    def flask(*arguments):
        result = start("-m", "flask", *arguments)
        assert result.returncode == 0, result.stderr
        return result

    return flask


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
                (key["name"], *key["constrained_columns"], key["options"].get("ondelete"))
                for key in inspector.get_foreign_keys(table)
            },
            "unique": {key["name"] for key in inspector.get_unique_constraints(table)},
            "checks": {
                (check["name"], re.sub(r"[()\s]|::\w+( varying)?", "", check["sqltext"]))
                for check in inspector.get_check_constraints(table)
            },
        }
        for table in inspector.get_table_names()
        if table != "alembic_version" and not table.startswith("post_search")
    } | {"indexes": indexes(engine)}


def indexes(engine):
    statement = (
        "SELECT indexdef FROM pg_indexes WHERE schemaname = 'public'"
        if engine.dialect.name == "postgresql"
        else "SELECT sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL"
    )
    with engine.connect() as connection:
        found = connection.exec_driver_sql(statement).scalars()
        return {sql for sql in found if "alembic" not in sql and "post_search" not in sql}


def test_the_migrations_create_the_schema_of_the_models(migrated):
    migrated_schema = schema(db.engine)
    with db.engine.begin() as connection:
        connection.exec_driver_sql("DROP TABLE post_search")
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


def test_a_full_downgrade_can_be_upgraded_again(flask, empty_url):
    flask("db", "upgrade")
    assert "Running downgrade" in flask("db", "downgrade", "base").stderr
    engine = sa.create_engine(empty_url.replace("postgresql:", "postgresql+psycopg:"))
    assert sa.inspect(engine).get_table_names() == ["alembic_version"]
    engine.dispose()
    flask("db", "upgrade")
    assert head_revision() in flask("db", "current").stdout


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
    archive.read(write_archive(path, *example_archive()))
    ada = find_account("ada")
    ada.suspended_at = now()
    db.session.add_all(
        [
            Session(user=ada, token_hash="x", user_agent="x"),
            Token(user=ada, token_hash="x", name="x", scope="read", expires_at=now()),
            RateWindow(key="x", hits=1, ends_at=now()),
            ModerationAction(moderator="grace", act="suspend", target="ada"),
        ]
    )
    db.session.commit()


def rows(engine):
    """Return the rows of each table."""
    with engine.connect() as connection:
        return {
            table: [
                dict(row)
                for row in connection.execute(
                    sa.text(f"SELECT * FROM {table} ORDER BY 1")
                ).mappings()
            ]
            for table in sa.inspect(connection).get_table_names()
            if table != "alembic_version" and not table.startswith("post_search")
        }


def only_columns_of(found, others):
    """Return the found rows, with only the tables and columns that `others` has."""
    return {
        table: [{name: row[name] for name in kept[0]} for row in found[table]]
        for table, kept in others.items()
        if kept
    }


def test_files_are_named_by_their_revisions():
    script = ScriptDirectory(str(FOLDER))
    assert head_revision() == script.get_current_head()
    assert known_revisions() == {each.revision for each in script.walk_revisions()}


def test_a_second_upgrade_does_nothing(flask):
    flask("db", "upgrade")
    again = flask("db", "upgrade")
    assert "Running upgrade" not in again.stderr
    assert again.stdout == f"The database schema is up to date ({head_revision()}).\n"


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


class TestStart:
    """A failed start prints one line with the next step, and no traceback."""

    def assert_stopped(self, result, *words, code=3):
        assert result.returncode == code, result.stderr
        [line] = result.stderr.splitlines()
        assert line.startswith("posting: ")
        for word in words:
            assert word in line

    @pytest.mark.skipif(not POSTGRES, reason="a new SQLite database migrates itself")
    def test_a_new_postgres_database_needs_an_upgrade(self, start):
        self.assert_stopped(start("wsgi.py"), "flask db upgrade")

    @pytest.mark.skipif(bool(POSTGRES), reason="Postgres needs an upgrade")
    def test_a_new_sqlite_database_migrates_itself(self, start, flask):
        assert start("wsgi.py").returncode == 0
        assert head_revision() in flask("db", "current").stdout

    def stamp(self, version):
        with db.engine.begin() as connection:
            connection.execute(VERSION_TABLE.update().values(version_num=version))

    def test_an_old_schema_needs_an_upgrade(self, start, migrated):
        self.stamp("0001")
        self.assert_stopped(start("wsgi.py"), "flask db upgrade")

    def test_a_newer_schema_needs_a_newer_version(self, start, migrated, tmp_path):
        self.stamp("9999")
        message = "The database has schema 9999, which this version does not know: a newer version"
        self.assert_stopped(start("wsgi.py"), message, "Install that version.")
        for command in ("export", "import"):
            result = start("-m", "flask", command, str(tmp_path / "archive"))
            assert (result.returncode, result.stdout) == (1, "")
            assert result.stderr.startswith(f"Error: {message}")

    def test_an_unreachable_database_is_an_error(self, start):
        url = "postgresql://postgres:hidden@127.0.0.1:9/nothing"
        result = start("wsgi.py", POSTING_DATABASE_URL=url)
        self.assert_stopped(result, "POSTING_DATABASE_URL", "127.0.0.1", code=1)  # systemd retries
        assert "hidden" not in result.stderr

    def test_an_upgrade_of_an_unreachable_database_is_an_error(self, start):
        url = "postgresql://postgres@127.0.0.1:9/nothing"
        result = start("-m", "flask", "db", "upgrade", POSTING_DATABASE_URL=url)
        assert result.returncode == 1
        [line] = result.stderr.splitlines()
        assert line.startswith("Error: The database postgresql+psycopg://postgres@127.0.0.1:9")

    def test_a_file_that_is_not_a_database_is_an_error(self, start, tmp_path):
        file = tmp_path / "file"
        file.write_text("This is no database, whatever the settings say. " * 99)
        result = start("wsgi.py", POSTING_DATABASE_URL=f"sqlite:///{file}")
        self.assert_stopped(result, "not a database", str(file))

    def test_a_missing_folder_is_an_error(self, start, tmp_path):
        folder = tmp_path / "nowhere"
        url = f"sqlite:///{folder}/posting.db"
        message = f"There is no folder {folder} for the database."
        self.assert_stopped(
            start("wsgi.py", POSTING_DATABASE_URL=url), message, "POSTING_DATABASE_URL"
        )
        upgrade = start("-m", "flask", "db", "upgrade", POSTING_DATABASE_URL=url)
        assert (upgrade.returncode, upgrade.stderr.count("\n")) == (1, 1)
        assert upgrade.stderr.startswith(f"Error: {message}")

    def test_an_invalid_gunicorn_setting_is_an_error(self, start):
        result = start("deploy/serve.py", MAX_REQUESTS="many")
        self.assert_stopped(result, "MAX_REQUESTS must be a whole number", "'many'")

    def test_an_invalid_setting_is_an_error(self, start):
        result = start("wsgi.py", POSTING_PROXY_HOPS="many")
        self.assert_stopped(result, "POSTING_PROXY_HOPS", "'many'")

    def test_gunicorn_does_not_retry(self, start):
        result = start("deploy/serve.py", POSTING_PASSWORD_MIN="3", PORT="0")
        assert result.returncode != 0
        assert "posting: POSTING_PASSWORD_MIN must be" in result.stderr
        assert "Traceback" not in result.stderr
