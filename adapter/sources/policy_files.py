"""A directory of policy files, as people write it or as Kubernetes mounts a ConfigMap."""

import asyncio
import os
import stat
from pathlib import Path
from typing import Final

from adapter.controller.errors import SourceError
from adapter.policy.source_text import MAX_BYTES

_ENDINGS: Final = (".yaml", ".yml")


class PolicyDirectory:
    """Every ``*.yaml`` and ``*.yml`` under one directory.

    Hidden names are left out: a ConfigMap mount holds each file twice, once under ``..data``,
    and editors keep their drafts behind a dot. So is what is no file: a pipe would be waited for.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    async def read(self) -> dict[str, bytes]:
        """Return the content of every policy file by path, in order of path.

        What is longer than a policy may be is cut one byte past that, for the loader to refuse.

        Raises:
            SourceError: the directory, or a file in it, cannot be read.
        """
        return await asyncio.to_thread(self._read)

    def _read(self) -> dict[str, bytes]:
        try:
            paths = sorted(_policies_under(self._directory))
            return {str(path): _content(path) for path in paths if _is_file(path)}
        except OSError as error:
            raise SourceError(
                f"policies: {error.filename or self._directory} cannot be read "
                f"({error.strerror}); give --policies a readable directory of *.yaml files"
            ) from error


def _policies_under(directory: Path) -> list[Path]:
    found = []
    for folder, folders, files in os.walk(directory, onerror=_raise):
        folders[:] = [name for name in folders if not name.startswith(".")]
        found += [
            Path(folder, name)
            for name in files
            if name.endswith(_ENDINGS) and not name.startswith(".")
        ]
    return found


def _is_file(path: Path) -> bool:
    """Return whether ``path`` is a file; a link to nowhere is an error, not a deleted policy."""
    return stat.S_ISREG(path.stat().st_mode)


def _content(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(MAX_BYTES + 1)


def _raise(error: OSError) -> None:
    """Stop at a folder that cannot be read: its policies must not look deleted."""
    raise error
