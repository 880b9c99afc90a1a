"""An engine's preset in a file, as ``leadtime fit-engine -o yaml`` prints it."""

from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import yaml
from pydantic import Field, ValidationError

from adapter.controller.errors import AdapterError
from adapter.scaling.section import Section
from adapter.simulator.presets import EnginePreset


class PresetError(AdapterError):
    """The file is no preset: names the file, the field and what was expected. The user's."""


class PresetDocument(Section):
    """The fields of ``EnginePreset``, all of them: times in seconds, camelCase as printed."""

    name: str = Field(min_length=1)
    a: float
    b: float
    c: float
    e: float
    alpha: float
    beta: float
    kv_tokens: int
    max_num_seqs: int
    max_num_batched_tokens: int
    kappa: float
    api_seconds: float
    token_seconds: float
    source: str

    def preset(self) -> EnginePreset:
        """Return the preset; raises ValueError for what no engine starts with."""
        return EnginePreset(**{one.name: getattr(self, one.name) for one in fields(EnginePreset)})


def read_presets(path: Path) -> tuple[EnginePreset, ...]:
    """Return every preset of a file, in its order.

    Raises:
        PresetError: it cannot be read, or something in it is no preset.
    """
    try:
        presets = tuple(_presets(path, path.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError) as error:
        raise PresetError(f"{path}: {_reason(error)}: {_EXPECTED}") from error
    except yaml.YAMLError as error:
        raise PresetError(f"{path}: {' '.join(str(error).split())}: {_EXPECTED}") from error
    if not presets:
        raise PresetError(f"{path}: holds no document: {_EXPECTED}")
    return presets


_EXPECTED = "expected what `leadtime fit-engine LOG.csv -o yaml` prints"


def _presets(path: Path, text: str) -> Iterator[EnginePreset]:
    documents: Iterator[Any] = yaml.safe_load_all(text)
    for number, document in enumerate(documents, start=1):
        try:
            yield PresetDocument.model_validate(document).preset()
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(str(part) for part in first["loc"]) or "the document"
            raise PresetError(
                f"{path}, document {number}: {place}: {first['msg'].lower()}: {_EXPECTED}"
            ) from error
        except ValueError as error:
            raise PresetError(f"{path}, document {number}: {error}") from error


def _reason(error: OSError | UnicodeDecodeError) -> str:
    return (error.strerror or "cannot be read") if isinstance(error, OSError) else "no UTF-8 text"
