"""``leadtime doctor``: what is read from one engine's metrics, and why the rest is not."""

import argparse
import asyncio
import json
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from adapter.cli import prometheus_doctor

if TYPE_CHECKING:
    from adapter.fleet.reading import Gap, Reading

FINE, FOUND, UNUSABLE = 0, 1, 2

_EPILOG: Final = """\
examples:
  leadtime doctor --engine-metrics http://10.0.3.7:8000/metrics
  leadtime doctor --engine-metrics dump.prom --engine triton --model llama -o json
  kubectl exec POD -- curl -s localhost:8000/metrics | leadtime doctor --engine-metrics -
  leadtime doctor --prometheus http://prometheus:9090 --label namespace=inference

exit codes:
  0 everything that this engine exports was read   1 no reading, a reading with faults, or
  one that does not tell the load                  2 the address or the file does not answer
"""
TIMEOUT_SECONDS: Final = 10.0


def add_parser(verbs: "argparse._SubParsersAction[Any]") -> None:
    """Add the verb to the command line."""
    parser = verbs.add_parser(
        "doctor",
        help="show what is read from an engine's metrics",
        description="Read an engine's metrics once, as the adapter does, and show every canonical\n"
        "metric with its value and the series behind it, or why it has none.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--engine-metrics", metavar="URL|FILE|-", help="- reads standard input")
    what.add_argument(
        "--prometheus", metavar="URL", help="the fleet that a policy over it would find"
    )
    parser.add_argument("--engine", default="auto", help="vllm, sglang, triton, …; default: auto")
    parser.add_argument("--model", help="the model as the engine names it, if it serves several")
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text")
    prometheus_doctor.add_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Read once, print what was found, and return the exit code."""
    # aiohttp takes longer to load than `leadtime doctor --help` may.
    from adapter.fleet.engines import ENGINES
    from adapter.fleet.read import read_exposition
    from adapter.fleet.reading import Gap
    from adapter.policy.address import shown_address
    from adapter.sources.clock import SystemClock

    engine, place = arguments.engine, arguments.engine_metrics
    known = ["auto", *(dialect.engine for dialect in ENGINES)]
    if engine not in known:
        print(f"leadtime doctor: no engine {engine!r}; one of {', '.join(known)}", file=sys.stderr)
        return UNUSABLE
    if place is None:
        return prometheus_doctor.run(arguments)
    try:
        body = _body(place)
    except OSError as error:
        print(f"leadtime doctor: {_no_file(place, error)}", file=sys.stderr)
        return UNUSABLE
    if isinstance(body, Gap):
        return _print_gap(body, arguments.output, code=UNUSABLE)
    found = read_exposition(
        body,
        engine=engine,
        model=arguments.model,
        at=SystemClock().now(),
        target=shown_address(place),
    )
    if isinstance(found, Gap):
        return _print_gap(found, arguments.output, code=FOUND)
    print(_as_json(found) if arguments.output == "json" else _as_text(found))
    return FOUND if _faults(found) or not _tells_load(found) else FINE


def _body(place: str) -> "bytes | Gap":
    """Return what ``place`` says, or why an address says nothing.

    Raises:
        OSError: a file that cannot be read.
    """
    if place == "-":
        return sys.stdin.buffer.read()
    if place.startswith(("http://", "https://")):
        return asyncio.run(_scraped(place))
    return Path(place).read_bytes()


async def _scraped(url: str) -> "bytes | Gap":
    from adapter.fleet.assemble import Target
    from adapter.fleet.units import Seconds
    from adapter.policy.address import shown_address
    from adapter.sources.clock import SystemClock
    from adapter.sources.scrape import Scraper

    async with Scraper(SystemClock()) as scraper:
        target = Target(uid=url, name=shown_address(url), url=url)
        return await scraper.fetch(target, Seconds(TIMEOUT_SECONDS))


def _no_file(place: str, error: OSError) -> str:
    """Return why there is no such file; what looks like an address is taken for one forgotten."""
    from adapter.policy.address import shown_address

    if not re.match(r"(localhost|[^/\s]+:\d+|[^/\s]+(?=.*/metrics$))(/|$)", place):
        return f"{place}: {error.strerror}; give a URL, a file or -"
    address = shown_address(f"http://{place}")
    return f"no file {address.removeprefix('http://')}; as an address: {address}"


def _print_gap(gap: "Gap", output: str, *, code: int) -> int:
    gap = replace(gap, detail=_as_options(gap.detail))
    if output == "json":
        print(json.dumps({"cause": str(gap.cause), "detail": gap.detail}, indent=2))
    else:
        print(f"leadtime doctor: {gap.cause}: {gap.detail}", file=sys.stderr)
    return code


def _as_options(detail: str) -> str:
    """Return what is written for policies in the words of this command."""
    for key, option in (("spec.model", "--model"), ("spec.engine", "--engine")):
        detail = detail.replace(key, option)
    return detail.replace("the policy names none", "none is named")


def _tells_load(reading: "Reading") -> bool:
    from adapter.fleet.metrics import Metric

    return bool({Metric.REQUESTS_RUNNING, Metric.REQUESTS_WAITING} & reading.values.keys())


def _warnings(reading: "Reading") -> list[str]:
    from adapter.policy.document import EngineName

    warnings = list(reading.warnings)
    if not _tells_load(reading):
        warnings.append(
            "neither requests_running nor requests_waiting is read: nothing tells the load, "
            "and the queue signal has nothing to scale by"
        )
    if reading.engine not in set(EngineName):
        warnings.append(
            f"spec.engine has no {reading.engine}: a policy reads it with engine: auto; it is "
            f"known from its sources, not measured as vLLM, SGLang and Triton are"
        )
    return warnings


def _faults(reading: "Reading") -> dict[str, str]:
    """Return why each metric has no value that this engine should have one for."""
    return {name: why for name, why in reading.missing.items() if name not in reading.unserved}


def _as_text(reading: "Reading") -> str:
    head = [f"engine  {reading.engine}", f"model   {reading.model or 'not named'}"]
    rows = [
        *((name, said, reading.matched.get(name, "")) for name, said in _said(reading).items()),
        *((name, "missing", why) for name, why in _faults(reading).items()),
        *((name, "-", reading.missing[name]) for name in sorted(reading.unserved)),
    ]
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    table = [f"{name:<{widths[0]}}  {said:>{widths[1]}}  {why}" for name, said, why in rows]
    warnings = [f"warning: {warning}" for warning in _warnings(reading)]
    return "\n".join([*head, f"ranks   {_ranks(reading)}", "", *table, *warnings])


def _ranks(reading: "Reading") -> str:
    """Return how many ranks speak; series that name none belong to the engine as a whole."""
    named = [name for name in reading.ranks if name]
    if not named:
        return "1 (not named)"
    rest = ", and series that name none" if "" in reading.ranks else ""
    return f"{len(named)} ({', '.join(named)}{rest})"


def _said(reading: "Reading") -> dict[str, str]:
    """Return every value that was read, as people write it."""
    said = {str(metric): f"{value:.10g}" for metric, value in reading.values.items()}
    if reading.ttft is not None:
        p95 = reading.ttft.quantile(0.95)
        since_start = "none yet" if p95 is None else f"{reading.ttft.count:g}, p95 {p95:.3g} s"
        said["ttft"] = since_start
    return said


def _as_json(reading: "Reading") -> str:
    ttft = reading.ttft
    facts = {
        "engine": reading.engine,
        "model": reading.model,
        "values": dict(reading.values),
        "ttft": None if ttft is None else {"count": ttft.count, "sumSeconds": ttft.sum_seconds},
        "ranks": {name: dict(rank.values) for name, rank in reading.ranks.items()},
        "matched": dict(reading.matched),
        "missing": _faults(reading),
        "notExported": {name: reading.missing[name] for name in sorted(reading.unserved)},
        "warnings": _warnings(reading),
    }
    return json.dumps(facts, indent=2)
