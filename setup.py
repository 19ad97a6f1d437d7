"""Let setuptools build in a temporary folder. Everything else is in setup.cfg.

Otherwise it leaves `build/` in the checkout, whose files it adds to the next wheel, and
`*.egg-info/`. It has no setting for a temporary folder.
"""

from tempfile import TemporaryDirectory

from setuptools import setup

with TemporaryDirectory() as folder:
    setup(options={"build": {"build_base": folder}, "egg_info": {"egg_base": folder}})
