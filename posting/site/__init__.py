"""Facts that apps need about a site: its name, its rules for sign-up and reading, its limits."""
