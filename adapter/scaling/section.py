"""The base of every section of a policy's ``spec``."""

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class ContradictionError(ValueError):
    """Two values of one section exclude each other; ``at`` is the key to point to."""

    def __init__(self, message: str, *, at: str) -> None:
        super().__init__(message)
        self.at = at


class Section(BaseModel):
    """A frozen part of the policy document: camelCase in YAML, snake_case here.

    Unknown keys are errors. Each stage declares its section in its own file, so that the field,
    its default, its meaning and the code that obeys it are read together.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        use_attribute_docstrings=True,
        allow_inf_nan=False,
        strict=False,
    )
