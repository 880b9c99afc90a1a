import asyncio
import json
import sys
import urllib.request
from pathlib import Path

import pytest

from adapter.cli.bench import PARTS
from adapter.cli.benchmarks import decide, parse, reads, scrape
from adapter.cli.benchmarks.engine_text import engine_text
from adapter.cli.benchmarks.figure import Figure
from adapter.cli.benchmarks.processes import BenchmarkError, adapter, engines, metrics_of
from adapter.cli.benchmarks.report import all_kept, as_json, as_text
from adapter.cli.benchmarks.stopwatch import BATCHES, cpu_seconds, cpu_seconds_of_first
from adapter.cli.main import main
from adapter.fleet.exposition import parse as parse_everything
from adapter.fleet.metrics import COUNTERS
from tests.fleet.expositions import reading_of, recorded

MACHINE = {"processor": "abacus", "cores": 2}
REAL = "vllm-0.32.0-real_cpu-under_load_1"


def values(figures: tuple[Figure, ...]) -> dict[str, float]:
    return {figure.name: figure.value for figure in figures}


class TestFigures:
    @pytest.mark.parametrize(
        ("value", "limits", "kept"),
        [
            (0.4, {"at_most": 0.5}, True),
            (0.5, {"at_most": 0.5}, True),
            (0.6, {"at_most": 0.5}, False),
            (21.0, {"at_least": 20.0}, True),
            (19.9, {"at_least": 20.0}, False),
            (3.0, {}, True),
            (3.0, {"at_least": 2.0, "at_most": 2.5}, False),
        ],
    )
    def test_a_promise_is_kept_up_to_its_limit(self, value, limits, kept):
        assert Figure("cores", value, **limits).kept is kept

    def test_json_has_the_machine_the_figures_and_the_promises(self):
        results = {
            "scrape": (Figure("targets", 1000), Figure("cores", 0.6, at_most=0.5)),
            "parse": (Figure("timesFaster", 60.0, at_least=20.0),),
        }

        said = json.loads(as_json(MACHINE, results))

        assert said["machine"] == MACHINE
        assert said["results"] == {
            "scrape": {"targets": 1000, "cores": 0.6},
            "parse": {"timesFaster": 60.0},
        }
        assert said["promises"] == [
            {"figure": "scrape.cores", "value": 0.6, "atMost": 0.5, "kept": False},
            {"figure": "parse.timesFaster", "value": 60.0, "atLeast": 20.0, "kept": True},
        ]

    def test_text_has_a_line_for_each_and_shouts_what_is_not_kept(self):
        results = {"scrape": (Figure("targets", 1000), Figure("cores", 0.6, at_most=0.5))}

        lines = as_text(MACHINE, results).splitlines()

        assert lines == [
            "processor: abacus",
            "cores: 2",
            "",
            "scrape.targets      1,000",
            "scrape.cores          0.6   promised: at most 0.5, NOT KEPT",
        ]

    def test_one_broken_promise_is_enough_for_a_bad_verdict(self):
        kept, broken = Figure("a", 1.0, at_most=1.0), Figure("b", 2.0, at_most=1.0)

        assert all_kept({"x": (kept,), "y": (kept,)})
        assert not all_kept({"x": (kept,), "y": (kept, broken)})


class TestEngineText:
    def test_it_is_as_long_as_a_real_one_and_has_as_many_samples(self):
        """50 kB and some 430 samples, within a tenth of the recorded engine's."""
        ours, theirs = engine_text("llama-70b", engine=0, scrape=0), recorded(REAL)

        assert len(ours) == pytest.approx(len(theirs), rel=0.1)
        assert len(parse_everything(ours)) == pytest.approx(len(parse_everything(theirs)), rel=0.1)

    def test_the_product_reads_every_metric_that_it_reads_from_a_real_one(self):
        ours, theirs = reading_of(engine_text("m", engine=0, scrape=0)), reading_of(recorded(REAL))

        assert ours.values.keys() == theirs.values.keys()
        assert (ours.ttft is None) == (theirs.ttft is None)
        assert not ours.warnings

    def test_the_same_arguments_give_the_same_text(self):
        assert engine_text("m", engine=3, scrape=5) == engine_text("m", engine=3, scrape=5)
        assert engine_text("m", engine=3, scrape=5) != engine_text("m", engine=4, scrape=5)

    def test_counters_only_grow_so_that_nothing_looks_like_a_restart(self):
        earlier, later = (reading_of(engine_text("m", engine=2, scrape=n)) for n in (6, 7))

        counted = COUNTERS & earlier.values.keys()
        assert counted
        assert all(later.values[metric] >= earlier.values[metric] for metric in counted)
        assert later.ttft.count > earlier.ttft.count


class TestStopwatch:
    def test_work_is_repeated_for_about_as_long_as_it_was_told(self):
        """70 ms of a work that takes a thousandth of it: far more than one call a batch."""
        calls = []

        once = cpu_seconds(lambda: calls.append(sum(range(2000))), within=0.07)

        assert len(calls) > 10 * BATCHES
        assert 0 < once < 0.01

    def test_long_work_is_done_a_few_times_only(self):
        calls = []

        cpu_seconds(lambda: calls.append(sum(range(200_000))), within=0.0)

        assert len(calls) == 3 + BATCHES

    def test_first_times_are_not_repeated(self):
        calls = []

        spent = cpu_seconds_of_first([lambda: calls.append("a"), lambda: calls.append("b")])

        assert calls == ["a", "b"]
        assert spent >= 0


class TestParse:
    def test_the_prefilter_and_the_library_are_measured_on_the_same_text(self):
        """The library reads everything at some 6 MB/s; ten times as fast is far below ours."""
        found = values(parse.measure({}, within=0.05))

        library = found["generated.libraryMegabytesPerSecond"]
        warm = found["generated.prefilterWarmMegabytesPerSecond"]
        cold = found["generated.prefilterColdMegabytesPerSecond"]
        assert warm / library == pytest.approx(found["generated.warmTimesFaster"])
        assert cold / library == pytest.approx(found["generated.coldTimesFaster"])
        assert warm > cold > library
        assert warm > 10 * library

    def test_what_is_promised_is_twenty_times_warm(self):
        (promised,) = (f for f in parse.measure({}, within=0.01) if f.at_least or f.at_most)

        assert (promised.name, promised.at_least) == ("generated.warmTimesFaster", 20.0)

    def test_a_text_of_ones_own_stands_beside_the_made_up_one(self):
        found = values(parse.measure({"mine": recorded(REAL)}, within=0.01))

        assert found["mine.kilobytes"] == pytest.approx(50.2, abs=0.05)
        assert found["mine.warmTimesFaster"] > found["mine.coldTimesFaster"] > 1

    def test_a_text_of_no_engine_cannot_be_measured(self):
        with pytest.raises(parse.NoEngineTextError, match="cannot measure it: notes: "):
            parse.measure({"notes": b"# buy milk\n"}, within=0.01)


class TestDecide:
    def test_more_replicas_take_longer(self):
        found = values(decide.measure((1, 40), within=0.0))

        assert 0 < found["tickOf1ReplicasMicroseconds"] < found["tickOf40ReplicasMicroseconds"]


@pytest.mark.slow
class TestScrape:
    def test_every_engine_is_scraped_by_a_real_adapter(self):
        """30 engines every 200 ms: 150 scrapes a second where nothing else runs."""
        found = values(scrape.measure(targets=30, interval=0.2, seconds=1.5))

        assert found["targets"] == 30
        assert found["kilobytesPerTarget"] == pytest.approx(50, abs=3)
        assert 0 < found["scrapesPerSecond"] < 200
        assert 0 < found["cores"] < 2
        assert 20 < found["peakResidentMebibytes"] < 300


FIRST = {
    "process_cpu_seconds_total": 3.0,
    "process_resident_memory_bytes": 90 * 2.0**20,
    "leadtime_tick_duration_seconds_count": 20.0,
    "leadtime_tick_duration_seconds_sum": 10.0,
    "leadtime_serving_replicas": 1000.0,
}
LAST = {
    **FIRST,
    "process_cpu_seconds_total": 5.0,
    "process_resident_memory_bytes": 80 * 2.0**20,
    "leadtime_tick_duration_seconds_count": 40.0,
    "leadtime_tick_duration_seconds_sum": 14.0,
}


class TestWatchedMetrics:
    """What is read from the adapter at the beginning and at the end, ten seconds apart."""

    def figures(self, last: dict[str, float]) -> dict[str, float]:
        watched = [(100.0, FIRST), (110.0, last)]
        return values(scrape.figures(watched, targets=1000, interval=5.0))

    def test_cores_are_cpu_seconds_a_second_and_memory_is_its_peak(self):
        """Two seconds for 2,000 scrapes, of which 200 are due each second: a fifth of a core."""
        found = self.figures(LAST)

        assert found["cpuMicrosecondsPerScrape"] == pytest.approx(1000)
        assert found["cores"] == pytest.approx(0.2)
        assert found["peakResidentMebibytes"] == 90
        assert found["scrapesPerSecond"] == 200
        assert found["meanTickMilliseconds"] == pytest.approx(200)

    def test_a_machine_too_busy_for_every_tick_does_not_make_it_look_cheap(self):
        """Half the ticks for half the CPU is the same price."""
        half = {
            **LAST,
            "process_cpu_seconds_total": 4.0,
            "leadtime_tick_duration_seconds_count": 30.0,
        }

        assert self.figures(half)["cores"] == pytest.approx(0.2)

    @pytest.mark.parametrize(
        ("wrong", "said"),
        [
            ({"leadtime_source_errors_total": 3.0}, "3 scrapes failed and 1000 of 1000"),
            ({"leadtime_serving_replicas": 990.0}, "0 scrapes failed and 990 of 1000"),
        ],
    )
    def test_figures_that_flatter_are_not_shown(self, wrong, said):
        with pytest.raises(BenchmarkError, match=said):
            self.figures({**LAST, **wrong})

    def test_a_system_that_does_not_tell_is_named(self):
        first = {key: value for key, value in FIRST.items() if "process" not in key}

        with pytest.raises(BenchmarkError, match="only Linux"):
            scrape.figures([(0.0, first), (1.0, first)], targets=1000, interval=5.0)


@pytest.mark.slow
class TestReads:
    def test_the_metric_is_read_plain_and_over_tls(self):
        found = values(reads.measure(seconds=1.2))

        ways = {name.partition(".")[0] for name in found}
        assert ways == {"http", "tls"}
        for way in ways:
            assert found[f"{way}.readsPerSecond"] > 50
            assert 0 < found[f"{way}.aloneP50Milliseconds"] <= found[f"{way}.aloneP99Milliseconds"]

    async def test_an_answer_that_is_not_the_metric_is_not_counted(self):
        """A server that refuses fast must not look like one that serves fast."""

        async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 2\r\n\r\nno")
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(refuse, "127.0.0.1", 0)
        async with server:
            port = server.sockets[0].getsockname()[1]
            client = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "adapter.cli.benchmarks.reader", "--seconds", "0.2"),
                f"http://127.0.0.1:{port}/apis?a=b",
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
            out, said = await client.communicate()

        assert client.returncode != 0
        assert out == b""
        assert b"not the metric: b'HTTP/1.1 503" in said

    def test_a_reader_that_fails_is_an_error_with_its_last_words(self, tmp_path: Path):
        """The engine answers, but with no metric."""
        with engines(["m"]) as (address,), pytest.raises(BenchmarkError, match="not the metric"):
            reads.read(address.removesuffix("/metrics"), (), connections=1, seconds=0.2)


@pytest.mark.slow
class TestProcesses:
    def test_engines_answer_on_a_port_each_and_end_with_the_context(self):
        with engines(["a", "b", "a"]) as addresses:
            models = [metrics_model(address) for address in addresses]

        assert models == ["a", "b", "a"]
        assert len(set(addresses)) == 3
        with pytest.raises(OSError, match="refused"):
            metrics_of(addresses[0].removesuffix("/metrics"))

    def test_engines_that_do_not_start_are_an_error(self):
        with pytest.raises(BenchmarkError, match="did not start"), engines([]):
            pass

    def test_an_adapter_that_does_not_start_is_an_error_with_its_words(self, tmp_path: Path):
        words = "--insecure-http excludes --tls-cert"

        with (
            pytest.raises(BenchmarkError, match=words),
            adapter(tmp_path, ["--insecure-http", "--tls-cert", "x"]),
        ):
            pass


def metrics_model(address: str) -> str | None:
    """Return the model of the engine behind ``address``, as the product reads it."""
    with urllib.request.urlopen(address, timeout=10) as answer:  # noqa: S310 - of our own engines
        return reading_of(answer.read()).model


class TestCommand:
    @pytest.mark.slow
    def test_one_part_is_measured_and_printed(self, capsys, tmp_path: Path):
        (tmp_path / "mine.prom").write_bytes(engine_text("m", engine=0, scrape=0))

        code = main(["bench", "parse", "-o", "json", "--exposition", str(tmp_path / "mine.prom")])

        out, err = capsys.readouterr()
        said = json.loads(out)
        assert code == (0 if all(promise["kept"] for promise in said["promises"]) else 1)
        assert [promise["figure"] for promise in said["promises"]] == [
            "parse.generated.warmTimesFaster",
            "parse.mine.warmTimesFaster",
        ]
        assert said["machine"].keys() == {
            *("leadtime", "date", "processor", "cores", "loadAverage", "python", "system")
        }
        assert err == "leadtime bench: measuring parse\n"

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            (["pares"], "no part 'pares'; one of parse, decide, simulate, scrape, reads"),
            (["--seconds", "0"], "'0' is not a number above 0"),
            (["--seconds", "soon"], "'soon' is not a number above 0"),
            (["--seconds", "3601"], "3601 is more than an hour (3600)"),
        ],
    )
    def test_wrong_options_are_a_sentence_and_2(self, capsys, arguments, said):
        with pytest.raises(SystemExit) as left:
            main(["bench", *arguments])

        assert left.value.code == 2
        assert said in capsys.readouterr().err

    def test_a_file_that_is_not_there_is_named(self, capsys, tmp_path: Path):
        code = main(["bench", "parse", "--exposition", str(tmp_path / "none.prom")])

        assert code == 2
        assert f"--exposition {tmp_path / 'none.prom'}: No such file" in capsys.readouterr().err

    def test_a_file_that_is_no_engines_is_named(self, capsys, tmp_path: Path):
        (tmp_path / "notes.txt").write_text("# buy milk\n")

        code = main(["bench", "parse", "--exposition", str(tmp_path / "notes.txt")])

        assert code == 2
        assert "leadtime bench: cannot measure it: notes: " in capsys.readouterr().err

    def test_help_names_every_part(self, capsys):
        with pytest.raises(SystemExit):
            main(["bench", "--help"])

        out = capsys.readouterr().out
        assert all(f"\n  {part}   " in out or f"\n  {part}  " in out for part in PARTS)
