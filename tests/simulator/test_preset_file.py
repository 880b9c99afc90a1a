"""Presets in files: what ``fit-engine`` prints is what is read, and nothing else."""

import pytest
import yaml

from adapter.cli.fitting import _preset_document
from adapter.simulator.preset_file import PresetError, read_presets
from adapter.simulator.presets import PRESETS

GOOD = _preset_document(PRESETS[0])


def a_file(place, *documents) -> object:
    path = place / "presets.yaml"
    path.write_text(yaml.safe_dump_all(documents, sort_keys=False))
    return path


def test_every_preset_comes_back_as_it_was(tmp_path):
    path = a_file(tmp_path, *map(_preset_document, PRESETS))

    assert read_presets(path) == PRESETS


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({**GOOD, "a": "fast"}, "a: "),
        ({**GOOD, "gamma": 1.0}, "gamma: "),
        ({key: value for key, value in GOOD.items() if key != "kvTokens"}, "kvTokens: "),
        ({**GOOD, "kvTokens": 0}, "kv_tokens is 0"),
        ({**GOOD, "alpha": -1.0}, "alpha is -1.0"),
        ({**GOOD, "name": ""}, "name: "),
        ("text", "the document: "),
        (None, "the document: "),
    ],
)
def test_what_is_no_preset_is_told_by_its_field(tmp_path, document, said):
    with pytest.raises(PresetError, match=said) as error:
        read_presets(a_file(tmp_path, GOOD, document))

    assert "presets.yaml, document 2" in str(error.value)
    assert "\n" not in str(error.value)


def test_a_file_that_is_not_there_or_no_yaml_is_told(tmp_path):
    path = tmp_path / "presets.yaml"
    for content, said in (
        (None, "No such file"),
        (b"\xff", "no UTF-8"),
        (b"a: [", "expected"),
        (b"", "no document"),
    ):
        if content is not None:
            path.write_bytes(content)

        with pytest.raises(PresetError, match=said) as error:
            read_presets(path)

        assert "\n" not in str(error.value)
