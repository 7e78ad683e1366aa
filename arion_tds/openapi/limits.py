"""How much one OpenAPI document may ask for. From config (`openapi`); used by every module of this package."""

from __future__ import annotations

import dataclasses
from typing import Literal

Output = Literal["loose", "strict", "off"]
"""What becomes of response schemas: loosened so that real answers pass, as the document says, or not served."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Sizes in bytes unless the name says otherwise. A document over one of them is refused with its name."""

    max_json_bytes: int = 16 << 20
    max_yaml_bytes: int = 8 << 20
    max_depth: int = 100
    max_nodes: int = 2_000_000
    max_operations: int = 5_000
    max_schema_depth: int = 64
    max_schema_components: int = 2_000
    warn_input_schema_bytes: int = 64 << 10
    max_input_schema_bytes: int = 256 << 10
    max_output_schema_bytes: int = 24 << 10
    max_enum_values: int = 1_000
    max_description_chars: int = 1_024
    max_name_chars: int = 64
    max_table_bytes: int = 32 << 20
    max_body_bytes: int = 10 << 20
    max_cpu_seconds: int = 10
    max_memory_bytes: int = 512 << 20
    max_wall_seconds: float = 60.0

    def named(self, name: str) -> str:
        """`(limit openapi.NAME = value)`, for error sentences."""
        return f"(limit openapi.{name} = {getattr(self, name)})"
