"""What `tracing` of the config may say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pydantic
import pytest

from arion_tds.config.observing import TracingConfig


def config(**more: Any) -> TracingConfig:
    return TracingConfig.model_validate({"endpoint": "http://127.0.0.1:4318", **more})


@pytest.mark.parametrize(
    ("endpoint", "url"),
    [
        ("http://collector:4318", "http://collector:4318/v1/traces"),
        ("http://collector:4318/", "http://collector:4318/v1/traces"),
        ("https://collector/otlp/v1/traces?tenant=a", "https://collector/otlp/v1/traces?tenant=a"),
    ],
)
def test_spans_go_to_the_usual_path_unless_the_url_has_one(endpoint: str, url: str) -> None:
    assert config(endpoint=endpoint).settings().url == url


@pytest.mark.parametrize(
    "wrong",
    [
        {"endpoint": "collector:4318"},
        {"endpoint": "http://user:pass@collector"},
        {"sample_ratio": 1.01},
        {"sample_ratio": -0.1},
        {"max_queue": 0},
        {"service_name": ""},
        {"headers": {"a b": {"environment": "X"}}},
        {"headers": {"authorization": "Bearer in the open"}},
    ],
)
def test_what_cannot_be_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(pydantic.ValidationError):
        config(**wrong)


def test_a_secret_that_no_header_carries_is_refused_without_being_quoted(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("s3cret\r\nx: y")
    with pytest.raises(ValueError, match="'authorization' holds characters") as refused:
        config(headers={"authorization": {"file": str(tmp_path / "token")}}).settings()
    assert "s3cret" not in str(refused.value)
