"""HTTP that the domain knows nothing of, one idea a module."""
