"""An error of a library in Rust."""


class Panic(BaseException):
    """An error like that of a library in Rust that panics."""
