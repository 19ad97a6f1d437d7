"""Numbers of things, in words."""


def count(number: int, noun: str) -> str:
    """Return a number of things, such as "1,000 comments"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def with_article(noun: str) -> str:
    """Return a noun with its article, such as "an owner"."""
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"
