"""`flask doctor`: each problem is found and has a fix, and no check raises an error."""

from posting.ops import doctor
from tests.conftest import POSTGRES
from tests.helpers.doctor import GOOD, only_problem, problems, unstarted


def test_a_healthy_service_has_no_problems(healthy, flask):
    assert problems(healthy) == []
    code, output = flask("doctor", on=healthy)
    assert code == 0
    assert all(line.startswith("ok       ") for line in output.splitlines())


def test_warnings_exit_with_0_and_print_the_fix_below(make_app, flask):
    code, output = flask("doctor", on=make_app(**GOOD | {"RATE_LIMITS": "off"}))
    assert code == 0
    expected = "warning  Password guesses are not limited\n         Remove POSTING_RATE_LIMITS.\n"
    assert expected in output


def test_a_failure_exits_with_1(make_app, flask):
    code, output = flask("doctor", on=make_app(**GOOD | {"PASSWORD_HASH": "scrypt:1024:8:1"}))
    assert code == 1
    assert "\nfailure  Passwords are hashed with scrypt:1024:8:1" in output


def test_an_unreachable_database_is_one_failure(flask):
    app = unstarted(DATABASE_URL="postgresql://postgres:hidden@127.0.0.1:9/nothing")
    assert "POSTING_DATABASE_URL" in only_problem(app, "failure", "cannot be used")
    code, output = flask("doctor", on=app)
    assert code == 1
    assert "hidden" not in output


def test_a_database_in_memory_is_a_warning(make_app):
    only_problem(make_app(DATABASE_URL="sqlite://", **GOOD), "warning", "in memory")


def test_an_old_schema_is_a_failure(healthy, monkeypatch):
    monkeypatch.setattr(doctor, "head_revision", lambda: "9999")
    assert only_problem(healthy, "failure", "not at 9999") == "Run: flask db upgrade"


def test_a_newer_schema_is_a_failure(healthy, monkeypatch):
    monkeypatch.setattr(doctor, "head_revision", lambda: "0000")
    monkeypatch.setattr(doctor, "known_revisions", lambda: frozenset({"0000"}))
    fix = only_problem(healthy, "failure", "a newer one upgraded it")
    assert ("pg_restore" if POSTGRES else "flask restore --force FILE") in fix


def test_a_database_without_a_schema_is_a_failure(healthy, monkeypatch):
    monkeypatch.setattr(doctor, "database_revisions", lambda _: [])
    assert only_problem(healthy, "failure", "at none") == "Run: flask db upgrade"
