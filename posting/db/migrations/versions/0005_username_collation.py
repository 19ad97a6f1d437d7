"""Compare usernames alike in every database.

Postgres converts text to lower case by the collation of the database. With a Turkish collation, the
unique index allowed both INGRID and Ingrid, which are the same username to the service.
"""

import sqlalchemy as sa
from alembic import op

from posting.config import StartError

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

RENAME = (
    "Rename all of them except one with psql (UPDATE users SET username = 'new' WHERE username = "
    "'old'), then run: flask db upgrade"
)


def upgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        _refuse_equal_names()
        _collate("C")


def downgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        _collate("default")


def _collate(collation: str) -> None:
    op.alter_column("users", "username", type_=sa.String(32, collation=collation))


def _refuse_equal_names() -> None:
    equal = sa.text(
        "SELECT string_agg(username, ' and ' ORDER BY created_at) FROM users "
        'GROUP BY lower(username COLLATE "C") HAVING count(*) > 1 ORDER BY 1'
    )
    if groups := op.get_bind().scalars(equal).all():
        raise StartError(
            f"Some users have the same name, apart from case: {', '.join(groups)}. {RENAME}"
        )
