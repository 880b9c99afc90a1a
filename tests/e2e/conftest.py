"""One vLLM for all tests of a run, and a new one after a test that killed it."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.engine import Vllm
from tests.e2e.installation import InstallationError, install

RULE = "=" * 78


@pytest.fixture(scope="session")
def vllm_python(pytestconfig: pytest.Config) -> Path:
    """Return the Python that has vLLM; where there is none, skip loudly, or fail if required."""
    output = pytestconfig.pluginmanager.getplugin("capturemanager")
    with output.global_and_fixture_disabled():
        try:
            return install()
        except (InstallationError, OSError) as error:
            reason = f"NO vLLM ON THIS MACHINE: {error}"
            print(f"\n{RULE}\n{reason}\n{RULE}")  # noqa: T201 - louder than a letter s
    if os.environ.get("LEADTIME_E2E") == "require":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def started() -> Iterator[list[Vllm]]:
    """Hold the engine that runs, if one does, and end it with the run."""
    engines: list[Vllm] = []
    yield engines
    for engine in engines:
        engine.stop()


@pytest.fixture
def engine(
    vllm_python: Path, started: list[Vllm], tmp_path_factory: pytest.TempPathFactory
) -> Vllm:
    """Return an engine that answers."""
    if started and not started[0].healthy:
        started.pop().stop()
    if not started:
        started.append(Vllm(vllm_python, tmp_path_factory.mktemp("vllm")))
        started[0].wait_until_ready()
    return started[0]
