"""The kinds of notifications about moderation."""

from posting.notifications.kinds import new_kind

REMOVAL = new_kind("removal")  # of what the recipient has written
REPORT_CLOSED = new_kind("report_closed")  # of the recipient
REPORT = new_kind("report", for_moderators=True)
