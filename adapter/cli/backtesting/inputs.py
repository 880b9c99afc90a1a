"""From options to a plan: the policy, the load and the engine that are played."""

import argparse
import sys
from pathlib import Path

from adapter.cli.output import as_text
from adapter.controller.errors import AdapterError
from adapter.fleet.units import Seconds
from adapter.policy.document import Policy
from adapter.policy.finding import Severity
from adapter.policy.load import read_files
from adapter.simulator.backtest.load import Load
from adapter.simulator.backtest.opening import open_load
from adapter.simulator.backtest.outcome import Plan
from adapter.simulator.preset_file import read_presets
from adapter.simulator.presets import PRESETS, EnginePreset

ENGINE = "llama-3.1-70b-4xh100"
"""What is played where nothing is said: as good a guess as any, so it is said in the output."""


class BacktestUsageError(AdapterError):
    """The options do not make a plan; says which, and what would."""


def plan_of(arguments: argparse.Namespace) -> Plan:
    """Return what is to be played.

    Raises:
        AdapterError: something that was named is not there, or cannot be used; in one sentence.
    """
    policy = policy_of(arguments)
    load = _load(arguments, policy)
    part = load.part(Seconds(arguments.skip), _seconds(arguments.length))
    _insist(load, part, arguments)
    return Plan(
        policy=policy,
        load=part,
        engine=_engine(arguments),
        load_time=_seconds(arguments.load_time) or policy.spec.load_time.default,
        scale=arguments.scale,
        warm_up=Seconds(arguments.warm_up),
        seed=arguments.seed,
    )


def _load(arguments: argparse.Namespace, policy: Policy) -> Load:
    if arguments.prometheus is None:
        return open_load(arguments.trace, form=arguments.format)
    # aiohttp takes half a second to load, which the other loads do without.
    from adapter.cli.backtesting.remembered import remembered_load

    try:
        return remembered_load(arguments, policy)
    except ValueError as error:
        raise BacktestUsageError(str(error)) from error


def policy_of(arguments: argparse.Namespace) -> Policy:
    """Return the one policy of the file, or the one of several that is named.

    What is wrong with the file is shown on stderr as ``lint`` shows it.

    Raises:
        BacktestUsageError: no such file, an error in it, or not one policy.
    """
    path: Path = arguments.policy
    try:
        placed, findings = read_files({str(path): path.read_bytes()})
    except OSError as error:
        raise BacktestUsageError(
            f"{path}: {error.strerror}: give a file that holds a ScalingPolicy"
        ) from error
    errors = [finding for finding in findings if finding.severity is Severity.ERROR]
    if errors:
        sys.stderr.write(as_text(errors))
        raise BacktestUsageError(f"{path}: the policy has errors: mend what stands above")
    found = {one.policy.metadata.name: one.policy for one in placed}
    if not found:
        raise BacktestUsageError(f"{path}: no ScalingPolicy in it: give a file that holds one")
    names, wanted = ", ".join(found), arguments.policy_name
    if wanted is not None and wanted not in found:
        raise BacktestUsageError(f"{path}: no policy {wanted!r} in it; there are: {names}")
    if wanted is None and len(found) != 1:
        raise BacktestUsageError(
            f"{path}: {len(found)} policies in it ({names}): choose one with --policy-name"
        )
    return found[wanted] if wanted is not None else next(iter(found.values()))


def _engine(arguments: argparse.Namespace) -> EnginePreset:
    """Return the engine of the preset file, or the known one of that name."""
    path, name = arguments.preset, arguments.engine
    known = PRESETS if path is None else read_presets(path)
    if path is not None and name is None and len(known) == 1:
        return known[0]
    wanted = name or (ENGINE if path is None else None)
    for one in known:
        if one.name == wanted:
            return one
    names = ", ".join(one.name for one in known)
    where = "" if path is None else f"{path}: "
    if wanted is None:
        raise BacktestUsageError(f"{where}{len(known)} presets: choose with --engine: {names}")
    raise BacktestUsageError(f"{where}no engine {wanted!r}; there are {names}")


def _insist(load: Load, part: Load, arguments: argparse.Namespace) -> None:
    """Refuse what leaves nothing to judge."""
    if part.length <= arguments.warm_up:
        raise BacktestUsageError(
            f"{load.name} is {load.length:g} s long; after --skip {arguments.skip:g} s and "
            f"--warm-up {arguments.warm_up:g} s nothing is left to judge"
        )


def _seconds(value: float | None) -> Seconds | None:
    return None if value is None else Seconds(value)
