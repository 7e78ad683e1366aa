"""gateway.yaml: every mistake at once, each with its path; limits have defaults; secrets are references."""

import pathlib
from typing import Any

import pytest

from arion_tds.config import judging, sharing, values
from arion_tds.errors import ConfigError
from arion_tds.model.names import Naming


def listener(name: str = "a", port: int = 8080, **block: Any) -> dict[str, Any]:
    gateway = {
        "server_info": {"name": f"{name}-mcp", "version": "1"},
        "tools_mode": {},
        "tds": {"config_name": "main"},
        **block,
    }
    return {"name": name, "address": f"127.0.0.1:{port}", "mcp_gateway": gateway}


def config(*listeners: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"control_plane": {"address": "127.0.0.1:50051"}, "listeners": list(listeners or [listener()]), **more}


def mistakes(value: object) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        judging.judge(value)
    return list(caught.value.problems)


def test_a_small_config_has_defaults_for_everything_else() -> None:
    judged = judging.judge(config())
    assert judged.gateways[0].scope == "a-mcp/main"
    assert judged.file.listeners[0].tool_names is Naming.QUALIFIED
    assert judged.file.control_plane is not None
    assert judged.file.control_plane.subscription == "wildcard"
    assert judged.file.admin.address == "127.0.0.1:9901"


def test_all_mistakes_come_at_once_with_their_paths() -> None:
    bad = config(
        {**listener(), "tool_names": "pretty", "pagesize": 3, "mcp_gateway": {"server_info": {"name": "a/b"}}},
        clusters=[{"name": "c", "endpoints": ["weather.example"]}, {"name": "d", "endpoints": []}],
    )
    found = "\n".join(mistakes(bad))
    for path in (
        "listeners[0].tool_names:",
        "listeners[0].pagesize: unknown key",
        "clusters[0].endpoints:",
        "clusters[1].endpoints:",
        "listeners[0].mcp_gateway.server_info.version:",
        "listeners[0].mcp_gateway",
    ):
        assert path in found, found


def test_two_tds_gateways_with_one_server_name_are_refused_by_name() -> None:
    two = [listener("a"), listener("b", 8081, server_info={"name": "a-mcp", "version": "2"})]
    (found,) = mistakes(config(*two))
    assert "'a'" in found
    assert "'b'" in found
    assert "'a-mcp'" in found


def test_gateways_without_tds_may_share_a_server_name() -> None:
    two = [listener("a"), listener("b", 8081, server_info={"name": "a-mcp", "version": "2"})]
    del two[1]["mcp_gateway"]["tds"]
    assert len(judging.judge(config(*two)).gateways) == 2


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ([], "mapping"),
        ({"listeners": []}, "listeners"),
        ({"listeners": [listener()]}, "control_plane: missing"),
        (config(listener("a"), listener("a", 8081)), "'a' is used more than once"),
        (config(listener("a"), listener("b", 8080)), "'127.0.0.1:8080' is used more than once"),
        (config(clusters=[{"name": "c", "endpoints": ["http://h:1"]}] * 2), "'c' is used more than once"),
        (config(admin={"address": ":9901"}), "names no host"),
        (config(admin={"address": "localhost"}), "not host:port"),
        (config(control_plane={"address": "h:1", "backoff_max": "soon"}), "not a duration"),
        (config(control_plane={"address": "h:1", "backoff_max": 0}), "greater than 0"),
        (config(sessions={"key": {"file": "k", "environment": "K"}}), "exactly one of"),
        (config(openapi={"limits": {"max_pages": 3}}), "'max_pages' is no limit"),
        (config(clusters=[{"name": "c", "endpoints": ["http://u:p@h"]}]), "not an origin"),
        (config(clusters=[{"name": "c", "endpoints": ["http://h/path"]}]), "not an origin"),
    ],
)
def test_mistakes_say_what_is_wrong(value: object, why: str) -> None:
    assert any(why in found for found in mistakes(value)), mistakes(value)


@pytest.mark.parametrize(
    ("text", "seconds"), [("15s", 15), ("250ms", 0.25), ("5m", 300), ("1h", 3600), (2, 2), ("3", 3)]
)
def test_durations(text: object, seconds: float) -> None:
    judged = judging.judge(config(control_plane={"address": "h:1", "initial_fetch_timeout": text}))
    assert judged.file.control_plane is not None
    assert judged.file.control_plane.initial_fetch_timeout == seconds


def test_addresses_may_be_ipv6() -> None:
    assert sharing.split_address("[::1]:8080") == ("::1", 8080)
    assert sharing.is_loopback("::1")
    assert sharing.is_loopback("localhost")
    assert not sharing.is_loopback("0.0.0.0")


def test_a_file_that_is_not_there_or_not_yaml_is_one_sentence(tmp_path: pathlib.Path) -> None:
    for content in (None, b"\xff", b"a: [", b"a: b: c"):
        path = tmp_path / "gateway.yaml"
        path.unlink(missing_ok=True)
        if content is not None:
            path.write_bytes(content)
        with pytest.raises(ConfigError) as caught:
            judging.load(str(path))
        (found,) = caught.value.problems
        assert str(path) in found
        assert "\n" not in found


def test_a_secret_is_read_when_it_is_needed_and_stands_in_no_dump(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "key"
    path.write_text("canary-from-file\n")
    monkeypatch.setenv("ARION_KEY", "canary-from-environment")
    assert values.Secret(file=str(path)).read() == b"canary-from-file"
    assert values.Secret(environment="ARION_KEY").read() == b"canary-from-environment"
    judged = judging.judge(config(sessions={"key": {"file": str(path)}}))
    assert "canary" not in judged.file.model_dump_json()


def test_embeddings_need_a_cluster_that_is_there() -> None:
    search = {"embeddings": {"cluster": "models", "model_id": "m", "dimensions": 8}}
    (found,) = mistakes(config(listener(search=search)))
    assert found.startswith("listeners[0].mcp_gateway.search.embeddings.cluster: there is no cluster 'models'")
    clusters = [{"name": "models", "endpoints": ["http://127.0.0.1:1"]}]
    assert judging.judge(config(listener(search=search), clusters=clusters)).gateways[0].search is not None


def test_a_list_whose_only_entry_is_wrong_is_not_said_to_be_empty() -> None:
    assert mistakes(config({**listener(), "pagesize": 3})) == [
        "listeners[0].pagesize: unknown key: did you mean 'page_size'?"
    ]
    assert any(one.startswith("listeners: ") for one in mistakes({"listeners": []}))


def test_an_unknown_key_is_told_the_known_one_that_is_like_it_where_it_stands() -> None:
    jwt = {"providers": {"x": {"isuer": "y"}}}
    servers = {"servers": [{"url": "http://a", "timout": 3}], "default": {"tls": {"cafile": "x"}}}
    bad = config({**listener(), "jwt": jwt, "qqq": 1}, contolPlane={}, mcp_servers=servers)
    said = [one for one in mistakes(bad) if "unknown" in one]
    assert said == [
        "listeners[0].jwt.providers.x.isuer: unknown key: did you mean 'issuer'?",
        "listeners[0].qqq: unknown key",
        "mcp_servers.default.tls.cafile: unknown key: did you mean 'ca_file'?",
        "mcp_servers.servers[0].timout: unknown key: did you mean 'timeout'?",
        "contolPlane: unknown key: did you mean 'control_plane'?",
    ]


def test_a_cache_needs_an_absolute_path() -> None:
    assert judging.judge(config(cache={"directory": "/var/lib/arion-tds"})).file.cache is not None
    (found,) = mistakes(config(cache={"directory": "here"}))
    assert "'here' is not an absolute path" in found


def test_a_pause_may_be_none_and_a_time_may_not() -> None:
    assert judging.judge(config(drain_delay="1500ms")).file.drain_delay == 1.5
    assert judging.judge(config(drain_delay=0)).file.drain_delay == 0
    assert mistakes(config(drain_delay=-1))
    assert mistakes(config({**listener(), "drain_timeout": 0}))


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        ({"listeners": []}, "listeners: is too short: it needs at least 1"),
        ({"workers": 0}, "workers: must be greater than or equal to 1"),
        (
            {"worker_timeout": "10ms"},
            "worker_timeout: must be 0 (never) or 1s at least: a busy worker also stands still for a moment",
        ),
        ({"log": {"format": "xml"}}, "log.format: must be 'text' or 'json'"),
        ({"node": {"id": 7}}, "node.id: must be a valid string"),
    ],
)
def test_mistakes_are_said_in_our_words(keys: dict[str, Any], sentence: str) -> None:
    assert mistakes({**config(listener()), **keys}) == [sentence]
