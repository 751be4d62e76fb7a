"""One tiny broken file a defect; the rest of every file is kept."""

from __future__ import annotations

import gzip

import polars as pl
import pytest
from trace_files import assert_declared, assert_same, codes, kernel, read_text, span, text_of

from gapless.model.errors import GaplessError, NotATraceError

BEFORE = '{"schemaVersion": 1, "traceEvents": [\n'
GOOD = '{"ph": "X", "cat": "cpu_op", "name": "good", "pid": 1, "tid": 1, "ts": 1.000, "dur": 2.000, "args": {"a": 4}}'
AFTER = '\n], "baseTimeNanoseconds": 5000}'


def with_broken(event: str) -> str:
    return BEFORE + GOOD + ",\n" + event + ",\n" + GOOD + AFTER


def op(name: str = "x", args: str = "") -> str:
    head = f'{{"ph": "X", "cat": "cpu_op", "name": "{name}", "pid": 1, "tid": 1,\n "ts": 5.000, "dur": 1.500'
    return head + (f', "args": {{{args}}}}}' if args else "}")


@pytest.mark.parametrize(
    ("event", "code", "name"),
    [
        (op('my "quoted" name'), "unescaped-quote", 'my "quoted" name'),
        (op('{"device": "cpu"}(12): run'), "unescaped-quote", '{"device": "cpu"}(12): run'),
        (op("a\tb\nc\x01d"), "control-character", "a\tb\nc\x01d"),
        (op("C:\\tmp\\x"), "invalid-escape", "C:\\tmp\\x"),
        (op("torch\\cuda\\__init__.py"), "invalid-escape", "torch\\cuda\\__init__.py"),
        (op(args='"t": "tab\there"'), "control-character", "x"),
        (op(args='"x": nan, "y": -inf, "Sequence number": 3'), "bare-nan", "x"),
        (op(args='"memory bandwidth (GB/s)": N/A'), "bare-nan", "x"),
        (op(args='"blocks per SM": 0,015, "Sequence number": 3'), "comma-decimal", "x"),
        (op(args='"a": 1, '), "stray-comma", "x"),
        (op(args='"a": , "b": 2'), "stray-comma", "x"),
        (op(args='"s": "say "hi" now", "b": 2'), "unescaped-quote", "x"),
        (op().replace('"pid": 1', '"pid": [1]'), "odd-types", "x"),
        (op().replace('"ts": 5.000', '"ts": "5.000"'), "odd-types", "x"),
    ],
)
def test_a_defect_is_repaired_counted_and_shown(event: str, code: str, name: str):
    raw = read_text(with_broken(event))
    assert_declared(raw)
    assert raw.ops["name"].to_list() == ["good", "good", name]
    assert raw.ops["start_ns"].to_list() == [0, 0, 4000]
    assert raw.ops["dur_ns"].to_list()[2] == 1500
    assert codes(raw) == {code: 1}
    assert raw.issues["severity"].to_list() == ["repaired"]
    assert raw.issues["example"][0]
    assert raw.meta.origin_ns == 6000
    assert not raw.meta.truncated
    if "Sequence number" in event:
        assert raw.ops["seq"].to_list()[2] == 3


def test_decimal_commas_in_times():
    raw = read_text(with_broken(op().replace("5.000", "5,250").replace("1.500", "1,125")))
    assert raw.ops.select("start_ns", "dur_ns").rows()[2] == (4250, 1125)
    assert codes(raw) == {"comma-decimal": 1}


def test_bytes_that_are_not_utf8():
    raw = read_text(with_broken(op("bad")).encode().replace(b"bad", b"b\xff\xfed"))
    assert raw.ops["name"].to_list()[2] == "b��d"
    assert codes(raw) == {"invalid-utf8": 1}


def test_an_event_beyond_repair_costs_only_itself():
    raw = read_text(with_broken('{"ph": "X", "name": }}}{{, garbage'))
    assert raw.ops["name"].to_list() == ["good", "good"]
    assert codes(raw) == {"unreadable-event": 1}
    assert raw.issues["severity"].to_list() == ["loss"]


def test_stray_and_missing_commas_between_events():
    raw = read_text(BEFORE + GOOD + ",,\n" + GOOD + "\n" + GOOD + ",\n]}")
    assert raw.ops.height == 3
    assert not raw.meta.truncated
    assert codes(raw)["stray-comma"] == 2


def test_a_list_of_objects_in_args_is_no_border():
    event = span("cpu_op", "nested", 3, 1, kernels=[{"name": "a"}, {"name": "b", "args": {}}, {"ts": 1}])
    raw = read_text(text_of(span("cpu_op", "a", 1, 1), event, kernel("k", 2, 1)), chunk_bytes=1)
    assert raw.ops["name"].to_list() == ["a", "nested"]
    assert codes(raw) == {}


def test_keys_after_the_events_are_no_events():
    text = text_of(kernel("k", 1, 1), deviceProperties=[{"id": 0, "name": "A"}, {"id": 1, "name": "B"}], with_stack=1)
    whole, pieces = read_text(text), read_text(text, chunk_bytes=1)
    assert_same(whole, pieces)
    assert [d.name for d in pieces.meta.devices] == ["A", "B"]
    assert pieces.meta.flags == ("with_stack",)


def test_a_truncated_file_gives_its_complete_events_and_says_where_it_stops():
    whole = BEFORE + GOOD + ",\n" + GOOD + ",\n" + op()
    for size in range(len(whole) - 60, len(whole) - 1):
        raw = read_text(whole[:size])
        assert raw.ops.height == 2
        assert raw.meta.truncated
        issue = raw.issues.filter(pl.col("code") == "truncated")["detail"][0]
        assert f"byte {size} " in issue
        assert "2 complete events" in issue
    raw = read_text(whole)
    assert raw.ops.height == 3
    assert raw.meta.truncated


def test_truncated_and_damaged_gzip():
    text = text_of(*(span("cpu_op", f"op{i}", i, 1) for i in range(3000)))
    packed = gzip.compress(text.encode())
    cut = read_text(packed[: len(packed) // 2])
    assert 100 < cut.ops.height < 3000
    assert {"truncated", "truncated-gzip"} <= set(codes(cut))
    spoilt = bytearray(packed)
    spoilt[len(packed) // 2] ^= 0xFF
    try:
        raw = read_text(bytes(spoilt))
    except GaplessError:
        return
    assert raw.ops.height <= 3000
    assert codes(raw)


def test_only_the_checksum_is_wrong():
    packed = bytearray(gzip.compress(text_of(kernel("k", 1, 1)).encode()))
    packed[-6] ^= 0xFF
    raw = read_text(bytes(packed))
    assert raw.activities.height == 1
    assert "damaged-gzip" in codes(raw)


def test_several_gzip_members_and_zero_padding():
    text = text_of(kernel("k", 1, 1), kernel("l", 3, 1)).encode()
    packed = gzip.compress(text[:50]) + gzip.compress(text[50:]) + b"\0" * 512
    raw = read_text(packed)
    assert raw.activities.height == 2
    assert codes(raw) == {}


def test_byte_order_mark():
    assert read_text(b"\xef\xbb\xbf" + text_of(kernel("k", 1, 1)).encode()).activities.height == 1


@pytest.mark.parametrize("opening", ["[", '{"a":', '[{"name":'])
def test_deep_nesting_neither_crashes_nor_costs_the_rest(opening: str):
    raw = read_text(with_broken(op(args='"x": ' + opening * 100_000)))
    assert raw.ops["name"].to_list()[:1] == ["good"]
    assert "unreadable-event" in codes(raw) or raw.meta.truncated


def test_deep_but_well_formed_args():
    raw = read_text(with_broken(op(args='"x": ' + "[" * 100_000 + "]" * 100_000)))
    assert raw.ops["name"].to_list() == ["good", "good"]
    assert codes(raw) == {"unreadable-event": 1}


@pytest.mark.parametrize("depth", [300, 600, 900])
def test_nesting_that_only_just_parses(depth: int):
    inner = '"x": ' + '[{"a": ' * depth + "1e9999999" + "}]" * depth
    text = text_of(kernel("k", 1, 1)).replace('"schemaVersion"', inner + ', "schemaVersion"')
    text = text.replace('"traceEvents": [', '"traceEvents": [' + op(args=inner + ', "Collective name": "a"') + ", ")
    raw = read_text(text)
    assert raw.activities.height == 1
    assert raw.meta.schema_version == 1


def test_deep_nesting_in_the_header():
    text = text_of(kernel("k", 1, 1)).replace(
        '"schemaVersion"', '"x": ' + "[" * 50_000 + "]" * 50_000 + ', "schemaVersion"'
    )
    raw = read_text(text)
    assert raw.meta.schema_version == 1
    assert codes(raw) == {"broken-metadata": 1}


@pytest.mark.parametrize(
    "number", ["1e999", "-1e999", "9" * 500, "9" * 10_000, "1" + "0" * 30, "0." + "0" * 5000 + "1"]
)
def test_huge_numbers_in_times(number: str):
    raw = read_text(with_broken(op().replace("5.000", number)))
    assert_declared(raw)
    assert raw.ops.height + raw.set_aside.height + codes(raw).get("unreadable-event", 0) == 3


def test_lone_surrogates_are_replaced():
    raw = read_text(with_broken(op("\\ud800 name")))
    assert raw.ops["name"].to_list()[2] == "? name"


def test_lone_surrogates_in_args():
    raw = read_text(with_broken(op(args='"Input Dims": ["\\ud800"], "Collective name": "\\udfff"')))
    assert raw.ops["input_dims"].to_list()[2] == '["?"]'
    assert raw.collectives["collective"].to_list() == ["?"]


def test_defects_in_every_event():
    """A reader that is not linear would take minutes here."""
    text = BEFORE + ",\n".join([op('a "q" b "" c', '"x": nan')] * 10_000) + AFTER
    raw = read_text(text)
    assert raw.ops.height == 10_000
    assert codes(raw) == {"unescaped-quote": 10_000, "bare-nan": 10_000}


@pytest.mark.parametrize("junk", ['"', "\\", "}", "]", '}, {"ph":', '"name": "', "[{", '","'])
def test_hostile_repetition_ends(junk: str):
    text = BEFORE + GOOD + ",\n" + junk * 50_000
    raw = read_text(text)
    assert raw.ops["name"].to_list()[0] == "good"


def test_nothing_of_a_list_is_no_trace():
    with pytest.raises(NotATraceError):
        read_text("[1, 2, 3")
