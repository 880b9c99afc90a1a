"""The bytes: what KEDA of any version reads, and that the generated code is the .proto's."""

import math
import subprocess
import sys
from pathlib import Path

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from hypothesis import given
from hypothesis import strategies as st

from adapter.serving.keda import externalscaler_pb2 as wire
from tests.serving.build import a_board, a_decision
from tests.serving.keda.client import METRIC, asked, reference, scaler_and_caller, serialized

ROOT = Path(__file__).parents[3]
FOLDER = "adapter/serving/keda"


def test_the_generated_code_is_what_the_proto_generates(tmp_path: Path):
    subprocess.run(
        [
            *(sys.executable, "-m", "grpc_tools.protoc", "-I", "."),
            *(f"--python_out={tmp_path}", f"--pyi_out={tmp_path}"),
            f"{FOLDER}/externalscaler.proto",
        ],
        cwd=ROOT,
        check=True,
    )
    made = {path.name: path.read_bytes() for path in (tmp_path / FOLDER).iterdir()}

    assert sorted(made) == ["externalscaler_pb2.py", "externalscaler_pb2.pyi"]
    for name, content in made.items():
        assert content == (ROOT / FOLDER / name).read_bytes(), (
            f"{name} differs; run python -m grpc_tools.protoc -I . --python_out=. --pyi_out=. "
            f"{FOLDER}/externalscaler.proto"
        )


@pytest.mark.parametrize(
    ("message", "bytes_on_the_wire"),
    [
        (wire.IsActiveResponse(result=True), "08 01"),
        (wire.IsActiveResponse(result=False), ""),
        (
            wire.MetricSpec(metricName="m", targetSize=1, targetSizeFloat=1),
            "0a 01 6d 10 01 19 00 00 00 00 00 00 f0 3f",
        ),
        (
            wire.MetricValue(metricName="m", metricValue=21, metricValueFloat=20.5),
            "0a 01 6d 10 15 19 00 00 00 00 00 80 34 40",
        ),
    ],
)
def test_the_bytes_are_those_of_the_contract(message, bytes_on_the_wire: str):
    expected = bytes.fromhex(bytes_on_the_wire)

    assert serialized(message) == expected
    assert type(message).FromString(expected) == message


EXPECTED = {
    "ScaledObjectRef": {"name": 1, "namespace": 2, "scalerMetadata": 3},
    "IsActiveResponse": {"result": 1},
    "GetMetricSpecResponse": {"metricSpecs": 1},
    "MetricSpec": {"metricName": 1, "targetSize": 2, "targetSizeFloat": 3},
    "GetMetricsRequest": {"scaledObjectRef": 1, "metricName": 2},
    "GetMetricsResponse": {"metricValues": 1},
    "MetricValue": {"metricName": 1, "metricValue": 2, "metricValueFloat": 3},
}


def test_every_field_has_the_number_that_keda_gave_it():
    found = {
        name: {field.name: field.number for field in message.fields}
        for name, message in wire.DESCRIPTOR.message_types_by_name.items()
    }

    assert found == EXPECTED
    assert wire.DESCRIPTOR.package == "externalscaler"


async def test_an_older_keda_reads_the_same_count_and_target():
    """Row 38: before 2.17 there are no float fields, and what is unknown is passed over."""
    spec_type, value_type = (_without_floats("MetricSpec"), _without_floats("MetricValue"))
    async with scaler_and_caller(a_board(chat=a_decision(7))) as keda:
        (spec,) = (await keda.get_metric_spec(reference())).metricSpecs
        (value,) = (await keda.get_metrics(asked())).metricValues

    old_spec = spec_type.FromString(serialized(spec))
    old_value = value_type.FromString(serialized(value))

    assert (old_spec.metricName, old_spec.targetSize) == (METRIC, 1)
    assert (old_value.metricName, old_value.metricValue) == (METRIC, 7)


def _without_floats(name: str):
    """Return the message as KEDA 2.16 knows it."""
    file = descriptor_pb2.FileDescriptorProto()
    wire.DESCRIPTOR.CopyToProto(file)
    (message,) = (found for found in file.message_type if found.name == name)
    del message.field[2]
    old = descriptor_pb2.FileDescriptorProto(
        name=f"old_{name}.proto", package="old", syntax="proto3", message_type=[message]
    )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(old)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"old.{name}"))


@given(count=st.integers(min_value=0, max_value=1_000_000))
def test_any_count_survives_the_wire_both_ways(count: int):
    message = wire.MetricValue(metricName=METRIC, metricValue=count, metricValueFloat=count)

    read = wire.MetricValue.FromString(serialized(message))

    assert read.metricValue == count
    assert math.isclose(read.metricValueFloat, count)
