"""What ``leadtime verify`` and ``leadtime probe`` do: ask endpoints, judge, tell."""

import argparse
import json
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from adapter.fleet.smoke import PROTOCOLS
from adapter.fleet.smoke.ask import Answer, Ask, Protocol, Said, UnusableAnswerError, object_of
from adapter.fleet.smoke.judge import (
    CACHE_HEADERS,
    VERSION_HEADERS,
    Fault,
    Finding,
    cache_faults,
    determinism_faults,
    expectation_faults,
    freshness_faults,
    version_faults,
)
from adapter.fleet.units import Seconds
from adapter.sources.clock import SystemClock
from adapter.sources.smoke import Endpoint, EndpointError, Prober, endpoints_of

AT_ONCE: Final = 16
"""Endpoints asked side by side; each is asked one thing at a time."""

_NONCE: Final = "{{nonce}}"


class VerifyError(ValueError):
    """The command line asks for something that cannot be done; says what to give."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What one endpoint was found to be."""

    endpoint: Endpoint
    findings: tuple[Finding, ...] = ()
    versions: Mapping[str, frozenset[str]] = field(default_factory=dict)
    cache: Mapping[str, str] = field(default_factory=dict)
    """Headers that speak of caching, as last seen."""

    answers: int = 0

    @property
    def fresh(self) -> bool:
        """Return whether nothing was found."""
        return not self.findings


def verify(arguments: argparse.Namespace) -> tuple[Report, ...]:
    """Return a report for every address of every URL.

    Raises:
        VerifyError: no such host, or inputs that cannot be compared.
    """
    headers = headers_of(arguments.header_file)
    inputs = _inputs(arguments)
    try:
        endpoints = [one for url in arguments.url for one in endpoints_of(url, headers)]
    except EndpointError as error:
        raise VerifyError(str(error)) from error
    asked = Asked.of(arguments, inputs)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        reports = list(pool.map(asked.report, endpoints))
    versions = {str(n): report.versions for n, report in enumerate(reports) if report.versions}
    if arguments.expect_version is not None:
        versions = {str(n): report.versions for n, report in enumerate(reports)}
    skewed = version_faults(versions, arguments.expect_version)
    return tuple(
        replace(report, findings=(*report.findings, *skewed.get(str(n), ())))
        for n, report in enumerate(reports)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is asked of every endpoint alike."""

    prober: Prober
    protocol: Protocol
    model: str
    tries: int = 2
    inputs: tuple[str, ...] = ()
    prompt: str | None = None
    expect: str | None = None
    determinism: bool = False

    @classmethod
    def of(cls, arguments: argparse.Namespace, inputs: tuple[str, ...] = ()) -> "Asked":
        """Return what the command line asks for.

        Raises:
            VerifyError: half of a pair of options.
        """
        if (arguments.prompt is None) != (arguments.expect is None):
            raise VerifyError("--prompt and --expect go together: a fixed prompt and its answer")
        protocol = next(one for one in PROTOCOLS if one.name == arguments.protocol)
        if protocol.name != "sglang" and not arguments.model:
            raise VerifyError(f"--protocol {protocol.name} needs --model, as the server names it")
        return cls(
            prober=Prober(
                SystemClock(),
                timeout=Seconds(arguments.timeout),
                insecure=arguments.insecure_skip_tls_verify,
            ),
            protocol=protocol,
            model=arguments.model,
            tries=getattr(arguments, "tries", 1),
            inputs=inputs,
            prompt=arguments.prompt,
            expect=arguments.expect,
            determinism=getattr(arguments, "determinism", False),
        )

    def report(self, endpoint: Endpoint) -> Report:
        """Return what ``endpoint`` was found to be; an endpoint that fails is a report too."""
        talk = _Talk(self.prober, endpoint, self.protocol)
        findings: list[Finding] = []
        try:
            findings += self._judged(talk)
        except UnusableAnswerError as error:
            findings.append(Finding(Fault.NO_ANSWER, str(error)))
        versions = self._versions(talk)
        seen = (cache_faults(answer.headers) for answer in talk.answers)
        findings += dict.fromkeys(finding for found in seen for finding in found)
        return Report(
            endpoint=endpoint,
            findings=tuple(findings),
            versions=versions,
            cache=_picked(talk.answers, CACHE_HEADERS),
            answers=len(talk.answers),
        )

    def smoke(self, endpoint: Endpoint) -> tuple[Finding, ...]:
        """Return what is wrong with one generation, and with the fixed prompt where one is given.

        Two requests that are answered alike may be chance; a probe asks for one and checks that
        it is one, and not from a cache.
        """
        talk = _Talk(self.prober, endpoint, self.protocol)
        try:
            if self.prompt is not None and self.expect is not None:
                found = expectation_faults(talk.say(self._fixed(talk, self.prompt)), self.expect)
            else:
                talk.say(self._maker(talk)(0))
                found = ()
        except UnusableAnswerError as error:
            return (Finding(Fault.NO_ANSWER, str(error)),)
        return (*found, *(one for a in talk.answers for one in cache_faults(a.headers)))

    def _judged(self, talk: "_Talk") -> Iterable[Finding]:
        """Ask, and yield what is wrong.

        Raises:
            UnusableAnswerError: an answer that is no generation.
        """
        make = self._maker(talk)
        pairs = [(talk.say(make(2 * k)), talk.say(make(2 * k + 1))) for k in range(self.tries)]
        yield from freshness_faults(pairs)
        if self.prompt is not None and self.expect is not None:
            said = talk.say(self._fixed(talk, self.prompt))
            yield from expectation_faults(said, self.expect)
        if self.determinism:
            one = make(0)
            yield from determinism_faults(talk.say(one), talk.say(one))

    def _maker(self, talk: "_Talk") -> Callable[[int], Ask]:
        if self.inputs:
            path = self.protocol.generation(self.model, "").path
            infer = path.replace("/generate", "/infer") if self.protocol.shaped else path
            return lambda k: Ask(infer, _with_nonce(self.inputs[k % len(self.inputs)]).encode())
        described = self._described(talk)
        return lambda k: self._shaped(prompt_of(k), described)

    def _fixed(self, talk: "_Talk", prompt: str) -> Ask:
        return self._shaped(prompt, self._described(talk))

    def _described(self, talk: "_Talk") -> Mapping[str, Any] | None:
        if self.protocol.describe is None:
            return None
        return object_of(talk.ask(self.protocol.describe(self.model)))

    def _shaped(self, prompt: str, described: Mapping[str, Any] | None) -> Ask:
        if self.protocol.shaped is None or described is None:
            return self.protocol.generation(self.model, prompt)
        return self.protocol.shaped(self.model, prompt, described)

    def _versions(self, talk: "_Talk") -> dict[str, frozenset[str]]:
        """Return every value that headers, bodies and the identity endpoints told, by field."""
        told: dict[str, set[str]] = {}
        for name, value in (*self._identities(talk), *_told_by_answers(talk)):
            told.setdefault(name, set()).add(value)
        return {name: frozenset(values) for name, values in sorted(told.items())}

    def _identities(self, talk: "_Talk") -> Iterable[tuple[str, str]]:
        for where, ask in self.protocol.identities(self.model).items():
            # asked as often as generations: behind one address may be two servers.
            for _ in range(2 * self.tries):
                try:
                    answer = talk.ask(ask)
                except UnusableAnswerError:
                    break
                for name, value in self.protocol.identity(where, self.model, answer).items():
                    yield f"{where} {name}", value


def _told_by_answers(talk: "_Talk") -> Iterable[tuple[str, str]]:
    for said in talk.said:
        yield from ((f"answer {name}", value) for name, value in said.versions.items())
    for name in VERSION_HEADERS:
        yield from ((name, a.headers[name]) for a in talk.answers if name in a.headers)


def prompt_of(number: int) -> str:
    """Return a short prompt that no cache has seen; neighbours differ from the first token on."""
    nonce = secrets.token_hex(8)
    subject = _SUBJECTS[number % len(_SUBJECTS)]
    return f"{nonce} {number}: Write one sentence about {subject}."


_SUBJECTS: Final = ("rivers", "mathematics", "bread", "the moon", "railways", "music")


def as_text(reports: Sequence[Report]) -> str:
    """Return a line per endpoint, and one per finding under it."""
    lines = []
    for report in reports:
        lines.append(f"{'✔' if report.fresh else '✘'} {report.endpoint.name}{_told(report)}")
        lines += [f"    {one.fault}: {one.detail}" for one in report.findings]
    stale = sum(not report.fresh for report in reports)
    asked = f"{len(reports)} endpoint{'s' * (len(reports) != 1)}"
    lines.append(f"{asked}, {stale} not fresh" if stale else f"{asked}, all fresh")
    return "\n".join(lines) + "\n"


def as_json(reports: Sequence[Report]) -> str:
    """Return the reports for a program."""
    return (
        json.dumps(
            {
                "fresh": all(report.fresh for report in reports),
                "endpoints": [_object(report) for report in reports],
            },
            indent=2,
        )
        + "\n"
    )


def _object(report: Report) -> dict[str, object]:
    return {
        "url": report.endpoint.url,
        "address": report.endpoint.address,
        "fresh": report.fresh,
        "answers": report.answers,
        "findings": [{"code": str(one.fault), "message": one.detail} for one in report.findings],
        "versions": {name: sorted(values) for name, values in report.versions.items()},
        "cacheHeaders": dict(report.cache),
    }


def _told(report: Report) -> str:
    shown = [f"{name}={'|'.join(sorted(v))}" for name, v in report.versions.items()]
    return f"  ({', '.join(shown)})" if shown else ""


class _Talk:
    """What was said with one endpoint so far."""

    def __init__(self, prober: Prober, endpoint: Endpoint, protocol: Protocol) -> None:
        self.endpoint = endpoint
        self.answers: list[Answer] = []
        self.said: list[Said] = []
        self._prober, self._protocol = prober, protocol

    def ask(self, ask: Ask) -> Answer:
        """Return the answer to anything; it is not counted as a generation."""
        return self._prober.send(self.endpoint, ask)

    def say(self, ask: Ask) -> Said:
        """Return what a generation says, and remember it."""
        answer = self._prober.send(self.endpoint, ask)
        self.answers.append(answer)
        said = self._protocol.said(answer)
        self.said.append(said)
        return said


def _picked(answers: Sequence[Answer], names: Sequence[str]) -> dict[str, str]:
    return {name: a.headers[name] for a in answers for name in names if name in a.headers}


def _with_nonce(text: str) -> str:
    return text.replace(_NONCE, secrets.token_hex(8))


def _inputs(arguments: argparse.Namespace) -> tuple[str, ...]:
    texts = tuple(_text(name) for name in arguments.input)
    if len(texts) == 1 or len(set(texts)) < len(texts):
        raise VerifyError(
            f"--input was given {len(texts)} file(s), {len(set(texts))} distinct: "
            f"give at least two that must be answered differently"
        )
    for name, text in zip(arguments.input, texts, strict=True):
        try:
            json.loads(text)
        except ValueError as error:
            raise VerifyError(f"{name}: not JSON ({error}); give a request's body") from error
    return texts


def headers_of(name: str | None) -> dict[str, str]:
    """Return the headers in the file ``name``; none without one.

    Raises:
        VerifyError: it cannot be read, or a line is no header.
    """
    if name is None:
        return {}
    found = {}
    for number, line in enumerate(_text(name).splitlines(), start=1):
        head, colon, value = line.partition(":")
        if not line.strip():
            continue
        if not colon or not head.strip():
            raise VerifyError(f"{name}:{number}: not a header; write Name: value")
        found[head.strip()] = value.strip()
    return found


def _text(name: str) -> str:
    try:
        return Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise VerifyError(f"{name}: {getattr(error, 'strerror', None) or 'not UTF-8'}") from error
