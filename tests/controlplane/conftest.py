"""One control plane for all tests of a run, with the adapter registered in it."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.controlplane.binaries import NoControlPlaneError, binaries
from tests.controlplane.plane import ControlPlane

RULE = "=" * 78


@pytest.fixture(scope="session")
def control_plane_binaries(pytestconfig: pytest.Config) -> Path:
    """Return the binaries; where they cannot be had, skip loudly, or fail if required."""
    output = pytestconfig.pluginmanager.getplugin("capturemanager")
    with output.global_and_fixture_disabled():
        try:
            return binaries()
        except (NoControlPlaneError, OSError) as error:
            reason = f"NO CONTROL PLANE ON THIS MACHINE: {error}"
            print(f"\n{RULE}\n{reason}\n{RULE}")  # noqa: T201 - louder than a letter s
    if os.environ.get("LEADTIME_E2E") == "require":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def plane(
    control_plane_binaries: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControlPlane]:
    """Return a cluster that is up."""
    made = ControlPlane(control_plane_binaries, tmp_path_factory.mktemp("plane"))
    try:
        made.start()
        yield made
    finally:
        made.stop()
