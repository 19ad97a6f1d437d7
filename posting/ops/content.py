"""The content of a database: the rows of an archive, except those that the service makes itself."""

import sqlalchemy as sa

from posting.db.base import archived_tables
from posting.invitations.first_run import IS_FIRST_LINK
from posting.invitations.models import Invitation
from posting.web.limits import RateWindow

# A start makes a link for the first moderator, and each request that has a limit is counted. Such
# rows are there before an operator imports or restores, and nothing is lost with them.
OWN_ROWS = {Invitation.__tablename__: IS_FIRST_LINK, RateWindow.__tablename__: sa.true()}


def find_content(connection: sa.Connection) -> str | None:
    """Return the name of a table with content, or None. The schema may be an earlier one."""
    existing = sa.inspect(connection).get_table_names()
    for table in archived_tables():
        own = OWN_ROWS.get(table.name, sa.false())
        rows = sa.select(sa.literal(1)).select_from(table).where(~own)
        if table.name in existing and connection.scalar(sa.select(rows.exists())):
            return table.name
    return None


def delete_own_rows(connection: sa.Connection) -> None:
    """Delete what the service has made itself, from a database that has no other content."""
    for model in (Invitation, RateWindow):
        connection.execute(sa.delete(model).where(OWN_ROWS[model.__tablename__]))


def delete_first_links(connection: sa.Connection) -> None:
    """Delete links for the first moderator, each of which belongs to the start that printed it."""
    connection.execute(sa.delete(Invitation).where(IS_FIRST_LINK))
