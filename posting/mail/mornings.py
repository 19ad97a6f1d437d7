"""Eight o'clock in the morning, when daily and weekly mails are sent, in the member's time zone."""

from datetime import UTC, datetime, time, timedelta
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

EIGHT = time(8)
MONDAY = 0


@cache
def time_zones() -> frozenset[str]:
    """Return the names of all time zones, such as `Europe/Berlin`."""
    return frozenset(available_timezones() - {"Factory", "localtime"})


def next_morning(zone: str, after: datetime, *, on_monday: bool = False) -> datetime:
    """Return the next morning, or the next Monday morning, later than a time."""
    place = ZoneInfo(zone if zone in time_zones() else "UTC")
    day = after.astimezone(place).date()
    while True:
        morning = datetime.combine(day, EIGHT, place).astimezone(UTC)
        if morning > after and not (on_monday and day.weekday() != MONDAY):
            return morning
        day += timedelta(days=1)
