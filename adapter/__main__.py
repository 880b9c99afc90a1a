"""``python -m adapter`` is ``leadtime``."""

from adapter.cli.main import entry

entry()
