from __future__ import annotations

import pytest
from trace_files import codes, read_events, read_text, span, text_of

OP = span("cpu_op", "a", 1, 1)


def test_facts_of_a_file():
    meta = read_events(
        OP, deviceProperties=[{"id": 0, "name": "NVIDIA H200", "numSms": 132, "computeMajor": 9}],
        with_stack=1, record_shapes=1, profile_memory=0, cupti_version=130001, roctracer_version=4.1, host_name="vm",
        trace_id="AB", gapless={"version": 1}, INFO=["x", 3], siteKey=[1], baseTimeNanoseconds=5,
    ).meta  # fmt: skip
    assert meta.flags == ("with_stack", "record_shapes")
    assert meta.devices[0].num_sms == 132
    assert meta.devices[0].warp_size is None
    assert meta.versions == {"cupti_version": "130001", "roctracer_version": "4.1"}
    assert (meta.host_name, meta.trace_id, meta.recorder) == ("vm", "AB", {"version": 1})
    assert meta.log_lines == ("INFO: x",)
    assert meta.other_keys == ("siteKey",)
    assert meta.origin_ns == 1005


@pytest.mark.parametrize(
    ("info", "rank", "world"),
    [
        ({"rank": 3, "world_size": 8, "pg_config": [{"pg_name": "0", "ranks": "[0, 1]"}]}, 3, 8),
        ({"rank": "3", "world_size": "8"}, 3, 8),
        ({"rank": 0}, 0, None),
        ({"backend": "nccl"}, None, None),
        ([1], None, None),
        ("nccl", None, None),
    ],
)
def test_distributed_info_in_all_shapes(info: object, rank: int | None, world: int | None):
    meta = read_events(OP, distributedInfo=info).meta
    assert (meta.rank, meta.world_size) == (rank, world)
    if isinstance(info, dict) and "pg_config" in info:
        assert meta.distributed["pg_config"][0]["ranks"] == [0, 1]


def test_rank_from_user_metadata():
    assert read_events(OP, rank="5").meta.rank == 5
    assert read_events(OP, metadata={"rank": 6}).meta.rank == 6


def test_broken_keys_are_skipped_and_the_others_kept():
    text = text_of(OP, baseTimeNanoseconds=7000, traceName="x")
    text = text.replace(
        '"baseTimeNanoseconds"', '"custom": {oops}, "ERROR": ["a "quoted" line"], "baseTimeNanoseconds"'
    )
    text = text.replace('"schemaVersion"', '"leading": nonsense, "schemaVersion"')
    raw = read_text(text)
    assert raw.meta.origin_ns == 8000
    assert raw.meta.schema_version == 1
    assert codes(raw) == {"broken-metadata": 3}
    assert not raw.meta.truncated


def test_digest_and_size_are_those_of_the_stored_bytes():
    import hashlib

    data = text_of(OP).encode()
    meta = read_text(data).meta
    assert (meta.sha256, meta.size_bytes) == (hashlib.sha256(data).hexdigest(), len(data))
