"""Numbers of things, in words."""


def count(number: int, noun: str) -> str:
    """Return a number of things, such as "1,000 comments"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
