"""The state of the service, as owners see it."""

from marshmallow import fields

from posting.web.schemas import Output, Timestamp, described, extensible

LEVELS = ("warning", "failure")


class Finding(Output):
    """Something that the service has found wrong with itself."""

    computed: tuple[str, ...] = ("check", "level", "message", "fix")

    check = fields.String(metadata=described("backups", "The name of the check."))
    level = fields.String(metadata=extensible(LEVELS, "warning"))
    message = fields.String(
        metadata=described("The newest backup in /var/backups/posting is from 2026-11-20 03:10 UTC")
    )
    fix = fields.String(
        metadata=described(
            "Check the nightly backup.", "What to do, often for the operator of the service."
        )
    )


class FirstSteps(Output):
    """The first steps with a new site: whether each of them is done."""

    computed: tuple[str, ...] = ("description", "rules", "invitation", "post", "backup")

    description = fields.Boolean(
        metadata=described(True, "Whether the site has a description or a text about it.")
    )
    rules = fields.Boolean(metadata=described(True, "Whether it has rules."))
    invitation = fields.Boolean(
        metadata=described(True, "Whether there is an invitation or another account.")
    )
    post = fields.Boolean(metadata=described(True, "Whether there is a post."))
    backup = fields.Boolean(metadata=described(True, "Whether there is a backup."))


class State(Output):
    """The state of the service."""

    computed: tuple[str, ...] = (
        "findings",
        "nightly_backup_at",
        "downloaded_at",
        "database_bytes",
        "free_bytes",
        "first_steps",
    )

    findings = fields.List(
        fields.Nested(Finding),
        metadata={"description": "What quick checks find wrong. `flask doctor` checks more."},
    )
    nightly_backup_at = Timestamp(
        "When the newest backup on the machine was made, if there is one. Otherwise null.",
        allow_none=True,
    )
    downloaded_at = Timestamp(
        "When an owner last began to download a backup. Otherwise null.", allow_none=True
    )
    database_bytes = fields.Integer(metadata=described(48_000_000, "The size of the database."))
    free_bytes = fields.Integer(
        allow_none=True,
        metadata=described(
            20_000_000_000, "The space on the disk of the database. Null on Postgres."
        ),
    )
    first_steps = fields.Nested(FirstSteps)
