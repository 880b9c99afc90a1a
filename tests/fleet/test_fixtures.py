"""Every recorded dump, with the numbers that stand in it.

The numbers were taken from the dumps with grep and awk, never from what the code printed.
"""

from dataclasses import dataclass

import pytest

from adapter.fleet.metrics import Metric
from adapter.fleet.reading import Cause
from tests.fleet.expositions import FIXTURES, gap_of, reading_of, recorded

COLUMNS = (
    Metric.REQUESTS_RUNNING,
    Metric.REQUESTS_WAITING,
    Metric.REQUESTS_DEFERRED,
    Metric.KV_CACHE_USAGE,
    Metric.KV_CACHE_USAGE_PEAK,
    Metric.PROMPT_TOKENS,
    Metric.GENERATION_TOKENS,
    Metric.REQUESTS_FINISHED,
    Metric.PREEMPTIONS,
)

VLLM = """
dump                                      run wait def kv        peak      prompt gener  fin prettft
0.10.2-codegen                              8    5   - 0.44      0.83       1200    900    1   3   5
0.11.0-codegen                              8    5   - 0.44      0.83       1200    900    1   3   5
0.11.2-codegen                              8    5   - 0.44      0.83       1200    900    1   3   5
0.11.2-codegen_show_hidden                  8    5   - 0.44      0.83       1200    900    1   3   5
0.12.0-codegen                              8    5   - 0.44      0.83       1200    900    1   3   5
0.13.0-codegen                              8    5   - 0.44      0.83       1200    900    1   3   5
0.15.1-codegen                              8    5   - 0.44      0.83       1200    900    1   3   5
0.18.1-codegen                              8    5   - 0.44      0.83       1200    900    1   3   5
0.20.0-codegen                              8    5   2 0.44      0.83       1200    900    1   3   5
0.26.0-codegen                              8    5   2 0.44      0.83       1200    900    1   3   5
0.29.0-codegen                              8    5   2 0.44      0.83       1200    900    1   3   5
0.31.0-codegen                              8    5   2 0.44      0.83       1200    900    1   3   5
0.32.0-real_cpu-engine_killed9_stale        8   16   0 .00781441 .00781441  7211  24021   65   0  73
0.32.0-real_cpu-stalled_engine_sigstop_1    8   16   0 .00586081 .00586081  4811  14013   41   0  49
0.32.0-real_cpu-stalled_engine_sigstop_2    8   16   0 .00586081 .00586081  4811  14013   41   0  49
0.32.0-real_cpu-stalled_engine_sigstop_3    8   16   0 .00586081 .00586081  4811  14013   41   0  49
0.32.0-real_cpu-under_load_1                8   24   0 .0039072  .0039072   1611   3029    9   0  17
0.32.0-real_cpu-under_load_2                8   16   0 .0039072  .0039072   2411   5197   17   0  25
0.32.0-real_cpu-under_load_3                8    8   0 .0039072  .0039072   3211   7621   25   0  33
0.32.0-real_cpu-under_load_4                8    8   0 .00586081 .00586081  3211   9421   25   0  33
0.32.0-real_cpu-under_load_5                8    0   0 .0039072  .0039072   4011  10725   33   0  41
0.32.0-real_cpu_after_admission_rejections  0    0   0 0         0           640   1600    8   0   8
0.32.0-real_cpu_after_load                  0    0   0 0         0          4011  12020   41   0  41
0.32.0-real_cpu_after_mass_abort            0    0   0 0         0          1600   2912    0   0   8
0.32.0-real_cpu_dp2_api2-under_load_1      16   24   0 .004884   .00586081  1600   2290    0   0  16
0.32.0-real_cpu_dp2_api2-under_load_2      16   24   0 .00683761 .00781441  1600   4186    0   0  16
0.32.0-real_cpu_dp2_api2-under_load_3      16    8   0 .0039072  .0039072   3200   5826   16   0  32
0.32.0-real_cpu_dp2_api2-under_load_4      16    8   0 .00586081 .00586081  3200   7990   16   0  32
0.32.0-real_cpu_dp2_api2-under_load_5      16    8   0 .00683761 .00781441  3200   9386   16   0  32
0.32.0-real_cpu_dp2_api2_after_load         0    0   0 0         0          4000  12000   40   0  40
0.32.0-real_cpu_dp2_api2_idle               -    -   - -         -             0      0    0   0   0
0.32.0-real_cpu_idle_before_any_request     0    0   0 0         0             0      0    0   0   0
0.32.0-real_cpu_kvfull-under_load_1         5    7   0 .869565   .869565    1600   1928    0   0   8
0.32.0-real_cpu_kvfull-under_load_2         3    9   0 .913043   .913043    1600   2961    0   0   8
0.32.0-real_cpu_kvfull-under_load_3         4    5   0 1         1          1600   4194    3   6   8
0.32.0-real_cpu_kvfull-under_load_4         4    3   0 .956522   .956522    2200   5455    5  10  11
0.32.0-real_cpu_kvfull-under_load_5         4    1   0 .869565   .869565    2400   6657    7  13  12
0.32.0-real_cpu_kvfull-under_load_6         3    1   0 .826087   .826087    2400   7600    8  14  12
0.32.0-real_cpu_kvfull-under_load_8         0    0   0 0         0          2400   8400   12  15  12
0.32.0-real_cpu_lora_after_load             0    0   0 0         0           312   7200   24   0  24
0.32.0-real_cpu_lora_under_load             8    8   0 .0019536  .0019536    208   2417    8   0  16
0.32.0-real_cpu_openmetrics_accept          0    0   0 0         0             0      0    0   0   0
0.4.3-codegen_v0engine                      7    5   - 0.97      0.97       1200    900    1   3   4
0.5.5-codegen_v0engine                      7    5   - 0.97      0.97       1200    900    1   3   4
0.6.6.post1-codegen_v0engine                7    5   - 0.97      0.97       1200    900    1   3   4
0.7.3-codegen                               7    5   - 0.83      0.83       1200    900    1   -   5
0.7.3-codegen_v0engine                      7    5   - 0.97      0.97       1200    900    1   3   4
0.8.1_v1-production_stack_issue318_excerpt  0    0   - 0         0             -      -    -   -   -
0.8.5-codegen                               7    5   - 0.83      0.83       1200    900    1   3   5
0.8.5-codegen_v0engine                      7    5   - 0.97      0.97       1200    900    1   3   4
0.9.2-codegen                               7    5   - 0.83      0.83       1200    900    1   3   5
"""

SGLANG = """
dump                                      run wait def kv        peak      prompt gener  fin prettft
0.4.0-codegen                              12   37   - 0.91      0.91       1000      -    -   -   5
0.4.10-codegen                             12   37   2 0.91      0.91       1000    200    1   -   5
0.4.4-codegen                              12   37   - 0.91      0.91       1000    200    1   -   5
0.4.6-codegen                              12   37   - 0.91      0.91       1000    200    1   -   5
0.5.10-codegen                             12   37   2 0.91      0.91       1000    200    1   -   5
0.5.10-codegen_priority_scheduling         12   37   2 0.91      0.91       1000    200    1   -   5
0.5.10.post1-datadog_integrations_core_fixture 0 0   - 0.25      0.25          5     32    1   -   1
0.5.13-codegen                             12   37   2 0.91      0.91       1000    200    1   -   5
0.5.16-codegen                             12   37   2 0.91      0.91       1000    200    1   -   5
0.5.2-codegen                              12   37   2 0.91      0.91       1000    200    1   -   5
0.5.23-codegen                             12   37   2 0.91      0.91       1000    200    1   -   4
0.5.23-codegen_dp2                         18   40   4 0.51      0.97       1000    200    1   -   4
0.5.23-codegen_priority_scheduling         12   37   2 0.91      0.91       1000    200    1   -   4
0.5.4-codegen                              12   37   2 0.91      0.91       1000    200    1   -   5
0.5.6-codegen                              12   37   2 0.91      0.91       1000    200    1   -   5
0.5.8-codegen                              12   37   2 0.91      0.91       1000    200    1   -   5
2024_pre0.3.5-sglang_pr1461_excerpt         0    0   - 0         0             -      -    -   -   -
router_rewritten-smg_pr813_excerpt          -    -   - -         -             -      -    -   -   -
"""

TRITON = """
dump                                    model            wait  fin  seconds    queue      steps
2.36.0-real_cpu_after_load              slow_py             -   20  16.227907  12.166727      6
2.36.0-real_cpu_under_load_1            slow_py             -    5   1.992610   0.950122      2
2.41.0-real_cpu_after_load              slow_py             0   20  12.594529   8.435267      5
2.41.0-real_cpu_under_load_1            slow_py             8    8   2.665334   0.923159      2
2.50.0-real_cpu_after_load              slow_py             0   20  27.359772  23.127173      6
2.50.0-real_cpu_under_load_1            slow_py            14    2   0.500667   0.001422      1
2.51.0-real_cpu_after_load              slow_py             0   52  61.593291  50.897978     15
2.51.0-real_cpu_after_load              stream_py           0    0   0          0             0
2.51.0-real_cpu_after_streaming         stream_py           0    6   5.602472   4.033144      6
2.51.0-real_cpu_after_unload            stream_py           0    0   0          0             0
2.51.0-real_cpu_decoupled_hidden_queue  llm_like            0   20   0.854540   0.731197     20
2.51.0-real_cpu_idle                    slow_py             0    0   0          0             0
2.51.0-real_cpu_under_load_1            slow_py            22    6   2.323792   1.009711      2
2.51.0-real_cpu_under_load_2            slow_py            18   10   4.928483   2.807833      3
2.51.0-real_cpu_under_load_3            slow_py            10   22  20.991891  16.454641      6
2.51.0-real_cpu_under_load_4            slow_py             0   30  38.027733  31.862795      8
2.65plus-shape_from_core_source         llm                 0   37   -          -             -
23.x-datadog_integrations_core_excerpt  densenet_onnx       0    3   1.327965   0.000145      -
23.x-datadog_integrations_core_excerpt  simple_string       0    0   -          -             -
25.03_vllm-server_issue8463_excerpt     hbvllm              -    - 858.150828   -             -
26.08-docs_sample_malformed_histogram   my_model            -  161   -          0.011110      -
_trtllm-2023.11-tensorrtllm_backend_issue49_excerpt tensorrt_llm - 0 -          -             -
_trtllm-2023.11-tensorrtllm_backend_issue49_excerpt ensemble -  59   -          -             -
_trtllm-main-readme_sample              tensorrt_llm        1    -   -          -             0
_vllm_backend-25.12-readme_sample       vllm_model          -    1   0.0868618  -             -
"""


def rows(prefix: str, table: str) -> list[tuple[str, list[str]]]:
    """Return a dump's name with the rest of its row."""
    split = [line.split() for line in table.strip().splitlines()[1:]]
    return [
        (f"{prefix}{'' if cells[0][0] == '_' else '-'}{cells[0]}", cells[1:]) for cells in split
    ]


def number(cell: str) -> float | None:
    return None if cell == "-" else float(cell)


def approximately(expected: float | None) -> object:
    return None if expected is None else pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(
    ("engine", "dump", "cells"),
    [
        pytest.param(engine, dump, cells, id=dump)
        for engine, table in (("vllm", VLLM), ("sglang", SGLANG))
        for dump, cells in rows(engine, table)
    ],
)
def test_a_dump_of_vllm_or_sglang_reads_as_the_numbers_in_it(
    engine: str, dump: str, cells: list[str]
):
    reading = reading_of(recorded(dump))

    assert reading.engine == engine
    *values, first_tokens = map(number, cells)
    for metric, expected in zip(COLUMNS, values, strict=True):
        assert reading.values.get(metric) == approximately(expected), metric
        assert (metric in reading.missing) == (expected is None), metric
    assert (None if reading.ttft is None else reading.ttft.count) == first_tokens


@pytest.mark.parametrize(
    ("dump", "cells"), [pytest.param(*row, id=row[0]) for row in rows("triton", TRITON)]
)
def test_a_dump_of_triton_reads_as_the_numbers_in_it(dump: str, cells: list[str]):
    """Versions of one model add up; a model is named, for most endpoints serve several."""
    model, *numbers = cells

    reading = reading_of(recorded(dump), model, engine="triton")

    metrics = (
        Metric.REQUESTS_WAITING,
        Metric.REQUESTS_FINISHED,
        Metric.REQUEST_SECONDS,
        Metric.QUEUE_SECONDS,
        Metric.ENGINE_STEPS,
    )
    assert reading.model == model
    for metric, cell in zip(metrics, numbers, strict=True):
        assert reading.values.get(metric) == approximately(number(cell)), metric


@dataclass(frozen=True)
class Other:
    """A dump with numbers of its own."""

    engine: str
    model: str | None
    values: dict[Metric, float]
    first_tokens: float | None = None


OTHERS = {
    "lmdeploy-main20260821-codegen": Other(
        "lmdeploy",
        "internlm/internlm3-8b-instruct",
        {
            Metric.REQUESTS_RUNNING: 8,
            Metric.REQUESTS_WAITING: 1 + 4,
            Metric.KV_CACHE_USAGE: 0.77,
            Metric.PROMPT_TOKENS: 500,
            Metric.GENERATION_TOKENS: 20,
            Metric.ENGINE_STEPS: 1,
        },
        first_tokens=1,
    ),
    "nim-run_ai_docs_names_shape": Other(
        "vllm",
        "meta/llama-3.1-8b-instruct",
        {Metric.REQUESTS_RUNNING: 3, Metric.REQUESTS_WAITING: 9, Metric.KV_CACHE_USAGE: 0.71},
    ),
    "ray_vllm-0.6-datadog_integrations_core_excerpt": Other(
        "vllm",
        "neuralmagic/Meta-Llama-3.1-70B-Instruct-FP8",
        {
            Metric.REQUESTS_RUNNING: 0,
            Metric.REQUESTS_WAITING: 0,
            Metric.PROMPT_TOKENS: 58,
            Metric.GENERATION_TOKENS: 300,
        },
        first_tokens=1,
    ),
    "tgi-3.3-shape_from_source": Other(
        "tgi",
        None,
        {
            Metric.REQUESTS_RUNNING: 32,
            Metric.REQUESTS_WAITING: 14,
            Metric.REQUESTS_FINISHED: 100,
            Metric.REQUESTS_REJECTED: 20,
            Metric.REQUEST_SECONDS: 153.2,
            Metric.ENGINE_STEPS: 100,
        },
    ),
    "tgis_adapter-2024-ibm_vllm_pr18_bad_label_excerpt": Other(
        "tgi", None, {Metric.REQUESTS_RUNNING: 0, Metric.REQUESTS_WAITING: 0}
    ),
    "trtllm-main2026-shape_from_source": Other(
        "trtllm",
        "nemotron-nano-3",
        {
            Metric.REQUESTS_RUNNING: 8,
            Metric.REQUESTS_WAITING: 5,
            Metric.KV_CACHE_USAGE: 0.62,
            Metric.GENERATION_TOKENS: 52000,
            Metric.REQUESTS_FINISHED: 100,
        },
        first_tokens=100,
    ),
    "trtllm-1.1-aibrix_issue2004_and_pr5785_unprefixed_excerpt": Other(
        "trtllm", None, {Metric.REQUEST_SECONDS: 3.4878239994868636}, first_tokens=2
    ),
    "dynamo-0.x-docs_sample": Other(
        "dynamo", None, {Metric.REQUESTS_FINISHED: 42, Metric.REQUEST_SECONDS: 2.5}
    ),
    "triton_trtllm-main-readme_sample": Other(
        "triton",
        "tensorrt_llm",
        {
            Metric.REQUESTS_RUNNING: 1,
            Metric.REQUESTS_WAITING: 1,
            Metric.KV_CACHE_USAGE: 1 / 6239,
        },
    ),
    "triton_vllm_backend-25.12-readme_sample": Other(
        "triton",
        "vllm_model",
        {Metric.PROMPT_TOKENS: 10, Metric.GENERATION_TOKENS: 16, Metric.REQUESTS_FINISHED: 1},
        first_tokens=1,
    ),
    "triton-2.65plus-shape_from_core_source": Other(
        "triton", "llm", {Metric.MODEL_LOAD_SECONDS: 41.732}, first_tokens=37
    ),
    "triton-26.08-docs_sample_malformed_histogram": Other(
        "triton", "my_model", {Metric.REQUESTS_FINISHED: 161}, first_tokens=37
    ),
    "sglang-router_rewritten-smg_pr813_excerpt": Other(
        "sglang", "meta-llama/Llama-3.1-8B-Instruct", {Metric.ENGINE_STEPS: 311}
    ),
}


@pytest.mark.parametrize("dump", OTHERS)
def test_a_dump_of_another_engine_reads_as_the_numbers_in_it(dump: str):
    expected = OTHERS[dump]

    reading = reading_of(recorded(dump))

    assert (reading.engine, reading.model) == (expected.engine, expected.model)
    for metric, value in expected.values.items():
        assert reading.values.get(metric) == pytest.approx(value), metric
    assert (None if reading.ttft is None else reading.ttft.count) == expected.first_tokens


GAPS = {
    "vllm-0.32.0-real_cpu_disable_log_stats": (Cause.NO_ENGINE, "--disable-log-stats is set"),
    "vllm-0.2.x_2023-vllm_pr1890_excerpt": (Cause.NO_ENGINE, "no series of"),
    "vllm-0.5.1-vllm_issue6337_all_zero_ttft_excerpt": (Cause.NO_ENGINE, "no +Inf bucket"),
    "sglang-0.4.10-sglang_pr7597_dp_rank_excerpt": (Cause.NO_ENGINE, "looked for"),
    "sglang-0.5.x-aibrix_issue1614_pid_label_excerpt": (Cause.NO_ENGINE, "looked for"),
    "triton-20.03-server_issue2755_types_without_samples_excerpt": (
        Cause.NO_ENGINE,
        "no model is loaded",
    ),
    "dynamo-mocker_2026-04-kthena_issue913_excerpt": (Cause.NO_ENGINE, "looked for"),
    "triton-2.51.0-real_cpu_under_load_1": (Cause.SEVERAL_MODELS, "'slow_py', 'stream_py'"),
    "triton_trtllm-2023.11-tensorrtllm_backend_issue49_excerpt": (
        Cause.SEVERAL_MODELS,
        "'ensemble', 'postprocessing', 'preprocessing', 'tensorrt_llm'",
    ),
}
"""Log stats off; before vLLM had metrics of its own; a histogram cut off in the issue text; and
excerpts that quote only series which say nothing of load (throughput, paused, context length)."""


@pytest.mark.parametrize("dump", GAPS)
def test_a_dump_without_a_usable_number_is_a_gap_that_says_why(dump: str):
    cause, words = GAPS[dump]

    gap = gap_of(recorded(dump))

    assert gap.cause is cause
    assert words in gap.detail


def test_every_recorded_dump_has_a_row_here():
    """A new dump without expected numbers fails, so nothing is read unchecked."""
    if not FIXTURES.is_dir():
        pytest.skip(f"{FIXTURES} is not there, see LEADTIME_SHARED")
    tables = (("vllm", VLLM), ("sglang", SGLANG), ("triton", TRITON))
    listed = {dump for prefix, table in tables for dump, _ in rows(prefix, table)}

    recorded_dumps = {path.stem for path in FIXTURES.glob("*.prom")}

    assert recorded_dumps == listed | OTHERS.keys() | GAPS.keys()
