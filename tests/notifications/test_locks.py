"""Comments and deletions of accounts at the same time, on Postgres."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa

from posting.accounts.models import User
from posting.db.transactions import transaction
from posting.db.types import new_id, now
from posting.notifications.models import Notification
from tests.conftest import POSTGRES
from tests.helpers.notifications import count_rows, kinds_of

pytestmark = pytest.mark.usefixtures("stays_consistent")


@pytest.mark.skipif(not POSTGRES, reason="SQLite has one writer at a time")
class TestLocks:
    @pytest.mark.usefixtures("short_lock_timeout")
    def test_a_comment_does_not_wait_for_a_recipient(self, app, alice, bob, post):
        with app.app_context(), transaction() as connection:
            own = sa.select(User.id).where(User.id == alice.user["id"])
            connection.execute(own.with_for_update())
            bob.add_comment(post, "@alice")
        assert kinds_of(alice) == ["mention"]

    def test_what_is_added_while_an_account_is_deleted_goes_along(self, app, alice, bob, post):
        """The transaction of a comment has begun before the deletion, and ends after it."""
        with ThreadPoolExecutor() as pool, app.app_context(), transaction() as connection:
            row = {"user_id": alice.user["id"], "created_at": now(), "id": new_id(), "kind": "x"}
            connection.execute(sa.insert(Notification), row | {"actor_id": bob.user["id"]})
            deletion = pool.submit(alice.delete, "/users/me")
            while bob.get(f"/users/{alice.user['id']}").status_code == 200:
                assert not deletion.done()
            connection.commit()
            assert deletion.result().status_code == 204
        assert count_rows(app) == 0

    @pytest.mark.usefixtures("short_lock_timeout")
    def test_a_deletion_succeeds_while_another_transaction_goes_on(self, app, alice, bob):
        with app.app_context(), transaction() as connection:
            row = {"user_id": bob.user["id"], "created_at": now(), "id": new_id(), "kind": "x"}
            connection.execute(sa.insert(Notification), row)
            assert alice.delete("/users/me").status_code == 204
            connection.rollback()
