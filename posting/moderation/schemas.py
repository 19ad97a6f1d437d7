"""Reports, suspensions, the log, and what moderators see of a member."""

from marshmallow import fields

from posting.accounts.models import MEMBER, ROLES
from posting.accounts.models import STATES as ACCOUNT_STATES
from posting.accounts.schemas import Author, author, reason_field
from posting.moderation.models import COMMENT, OPEN, OUTCOMES, POST, STATES, USER
from posting.web.schemas import (
    NOT_BLANK_PATTERN,
    Identifier,
    Input,
    Length,
    OneOf,
    Output,
    PageQuery,
    Parameter,
    String,
    Timestamp,
    TimestampInput,
    described,
    extensible,
    not_blank,
)

KINDS = (POST, COMMENT, USER)

MAX_COUNT = 100


class ReportInput(Input):
    """A new report."""

    reason = String(
        required=True,
        validate=[Length(1, 1000), not_blank],
        pattern=NOT_BLANK_PATTERN,
        metadata=described("This is advertising.", "Why moderators should look at it."),
    )


class ReportsQuery(PageQuery):
    """A page of reports."""

    state = Parameter(
        load_default=OPEN,
        validate=OneOf(STATES),
        metadata=described(OPEN, "`open`: the oldest first. `closed`: the last closed first."),
    )


class ReportDecision(Input):
    """The decision about a report, which closes it."""

    outcome = String(
        required=True,
        validate=OneOf(OUTCOMES),
        metadata=described("dismissed", "What came of the report."),
    )
    note = reason_field("The reporter and other moderators read it.", allow_none=True)


class Target(Output):
    """The target of a report: a post, a comment or a user."""

    computed: tuple[str, ...] = ("images", "files")

    kind = fields.String(metadata=extensible(KINDS, "comment"))
    id = Identifier()
    post_id = Identifier("The post, or that of the comment. Null for a user.", allow_none=True)
    author = author()
    excerpt = fields.String(
        metadata=described(
            "Buy cloth at …",
            "Its beginning when it was reported, as plain text in one line; of a user, the names "
            "and the bio.",
        )
    )
    exists = fields.Boolean(metadata=described(True, "False if it was deleted."))
    edited = fields.Boolean(metadata=described(False, "Whether it was edited since the report."))
    images = fields.List(
        fields.Nested("Image"), metadata={"description": "Those that it has now. None of a user."}
    )
    files = fields.List(
        fields.Nested("File"), metadata={"description": "Those that it has now. None of a user."}
    )


class Report(Output):
    """A report to the moderators."""

    computed: tuple[str, ...] = ("target",)

    id = Identifier()
    reporter = author()
    target = fields.Nested(Target)
    reason = fields.String(metadata=described("This is advertising."))
    state = fields.String(metadata=extensible(STATES, OPEN))
    outcome = fields.String(
        allow_none=True, metadata=extensible(OUTCOMES, "dismissed", "Null while it is open.")
    )
    note = fields.String(allow_none=True, metadata=described(None, "The answer to the reporter."))
    created_at = Timestamp()
    closed_at = Timestamp(allow_none=True)
    closed_by = fields.Nested(
        Author,
        allow_none=True,
        metadata={"description": "Only moderators see it. Null for an operator."},
    )


class SuspensionInput(Input):
    """A suspension of a member."""

    reason = reason_field("The member reads it at the next sign-in.", required=True)
    until = TimestampInput(
        allow_none=True,
        metadata=described(
            "2026-12-05T09:30:00.125Z", "When it ends. Null, the default, is until it is lifted."
        ),
    )


class Suspension(Output):
    """A suspension of a member."""

    reason = fields.String(allow_none=True, metadata=described("This is advertising."))
    since = Timestamp()
    until = Timestamp("Null if it lasts until it is lifted.", allow_none=True)


class Mark(Output):
    """A lock or a pin of a post."""

    since = Timestamp()


class RemovalInput(Input):
    """A step of the removal of everything that a member has written."""

    reason = reason_field("The member reads that of the first step.", allow_none=True)


class AccountRemovalQuery(Input):
    """The reason of the deletion of an account."""

    reason = reason_field("For the log.")


class RemovalStep(Output):
    """The result of a step of a removal."""

    removed = fields.Integer(metadata=described(2000, "Posts and comments that this step deleted."))
    left = fields.Integer(metadata=described(0, "Posts and comments that are left."))


class Member(Author):
    """An account as moderators see it."""

    role = fields.String(metadata=extensible(ROLES, MEMBER))
    state = fields.String(metadata=extensible(ACCOUNT_STATES, "active"))
    created_at = Timestamp()
    last_seen_at = Timestamp("Exact to the hour; null before the first use.", allow_none=True)
    suspension = fields.Nested(
        Suspension, allow_none=True, metadata={"description": "Null without a suspension."}
    )
    application = fields.String(allow_none=True, metadata=described("I weave too."))
    invited_by = fields.String(allow_none=True, metadata=described("grace", "A username."))
    invited = fields.List(fields.String(), metadata=described(["charles"], "Usernames."))
    posts = fields.Integer(metadata=described(12))
    comments = fields.Integer(metadata=described(108))
    images = fields.Integer(metadata=described(3))
    files = fields.Integer(metadata=described(1))
    open_reports = fields.Integer(metadata=described(1, "Open reports on what the member wrote."))
    closed_reports = fields.Integer(metadata=described(0, "Closed reports of the last year."))


class OpenCounts(Output):
    """The numbers of open reports and of applications."""

    reports = fields.Integer(
        metadata=described(2, f"Open reports. {MAX_COUNT} means that or more.")
    )
    applications = fields.Integer(
        metadata=described(1, f"Accounts to approve. {MAX_COUNT} means that or more.")
    )


class LogQuery(PageQuery):
    """A page of the moderation log."""

    user = Identifier("The ID of a user: only acts on this user and what the user wrote.")


class ActTarget(Output):
    """The target of an act."""

    kind = fields.String(metadata=described("comment"))
    id = Identifier(
        "Null for members if the target is not a post, a comment, an image or a file.",
        allow_none=True,
    )


class Act(Output):
    """An entry of the moderation log."""

    id = Identifier()
    created_at = Timestamp()
    action = fields.String(metadata=described("deleted"))
    by = fields.String(
        metadata=described("ada", "The name of the moderator at that time, or `operator`.")
    )
    moderator = author()
    target = fields.Nested(ActTarget)
    user = fields.Nested(
        Author,
        allow_none=True,
        metadata={"description": "Whom it concerns. Only moderators see it."},
    )
    reason = fields.String(allow_none=True, metadata=described("This is advertising."))
