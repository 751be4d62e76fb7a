"""Names, types and places that changed between versions of torch."""

from __future__ import annotations

import polars as pl
from trace_files import assert_declared, codes, kernel, read_events, read_text, span


def test_torch_1_8_names_and_string_tids():
    raw = read_events(
        span("Operator", "aten::add", 100, 50, 25738, "25738", **{"external id": 2, "Input dims": [[2]]}),
        span("Operator", "ProfilerStep#1", 90, 100, 25738, "25738"),
        span("Runtime", "cudaLaunchKernel", 110, 5, 25738, "25738", correlation=9, **{"external id": 2}),
        span("Kernel", "k", 120, 10, 0, "stream 7 user", correlation=9, device=0, stream=7),
        span("Memcpy", "Memcpy HtoD (Pageable -> Device)", 130, 10, 0, "stream 20", correlation=10, bytes=64),
        {"ph": "i", "name": "[memory]", "pid": 25738, "tid": "25738", "ts": 101, "s": "t",
         "args": {"Device Type": 0, "Device Id": -1, "Bytes": 64}},
        {"ph": "s", "id": 9, "pid": 25738, "tid": 25738, "ts": 110, "cat": "async", "name": "launch"},
    )  # fmt: skip
    assert_declared(raw)
    assert raw.threads["tid"].to_list() == ["25738"]
    assert raw.ops.select("name", "kind").rows() == [("ProfilerStep#1", "annotation"), ("aten::add", "op")]
    assert raw.ops["external_id"].to_list() == [None, 2]
    assert raw.ops["input_dims"].to_list() == [None, "[[2]]"]
    assert raw.calls.select("name", "api", "correlation", "external_id").rows() == [
        ("cudaLaunchKernel", "runtime", 9, 2)
    ]
    assert raw.activities.select("kind", "device", "stream", "size_bytes").rows() == [
        ("kernel", 0, 7, None), ("memcpy", 0, 20, 64),
    ]  # fmt: skip
    assert raw.memory.select("size_bytes", "address", "name").rows() == [(64, None, "[memory]")]
    assert codes(raw) == {}


def test_categories_in_any_case_and_unknown_ones():
    raw = read_events(
        span("gpu_user_Annotation", "step", 1, 2, 0, 7),
        span("KERNEL", "k", 1, 2, 0, 7),
        span("quantum_op", "q", 1, 2),
        {"ph": "C", "cat": "hardware_counters", "name": "c", "pid": 0, "tid": 0, "ts": 1, "args": {"": 5}},
        {"ph": "B", "cat": "cpu_op", "name": "begin", "pid": 1, "tid": 1, "ts": 1},
    )
    assert raw.gpu_annotations.height == 1
    assert raw.activities.height == 1
    assert codes(raw) == {"unknown-kind": 2}
    assert raw.meta.size_by_category["quantum_op"][0] == 1
    assert raw.meta.events == 5


def test_events_without_args_cat_or_dur():
    raw = read_events(
        {"ph": "X", "cat": "overhead", "name": "Activity Buffer Request", "pid": -1, "tid": 0, "ts": 5, "dur": 2},
        {"ph": "X", "cat": "cpu_op", "name": "open", "pid": 1, "tid": 1, "ts": 6},
        {"ph": "X", "name": "legacy", "pid": "CPU functions", "tid": 3, "ts": 7, "dur": 1, "args": {}},
    )
    assert raw.overheads["dur_ns"].to_list() == [2000]
    assert raw.ops.select("name", "dur_ns").rows() == [("open", 0), ("legacy", 1000)]
    assert codes(raw) == {"no-duration": 1}


def test_bare_list():
    raw = read_text('[{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 1, "dur": 2}]')
    assert raw.meta.format == "bare-list"
    assert raw.ops.height == 1
    assert not raw.meta.truncated


def test_the_last_thread_name_wins():
    def name(text: str) -> dict:
        return {"ph": "M", "name": "thread_name", "pid": 1, "tid": 639, "ts": 0, "args": {"name": text}}

    raw = read_events(
        name("thread 639 (python3)"), span("cpu_op", "a", 1, 1, 1, 639), name("thread 639 (pt_autograd_0)")
    )
    assert raw.threads["name"].to_list() == ["thread 639 (pt_autograd_0)"]


def test_hip_calls_carry_size_and_direction_as_text():
    raw = read_events(
        span("cuda_runtime", "hipMemcpyWithStream", 1, 5, correlation=3, src="0x1", dst="0x2", size="2560", kind="2"),
        span("cuda_runtime", "hipMalloc", 9, 5, correlation=4, bytes=4096, ptr="0x1"),
        span("cuda_runtime", "hipLaunchKernel", 20, 5, correlation=5, grid=[1, 1, 1], block=[64, 1, 1], stream="0x0"),
    )
    assert raw.calls.select("size_bytes", "copy_kind").rows() == [(2560, "DtoH"), (4096, None), (None, None)]


def test_xpu_mtia_and_hpu_categories():
    raw = read_events(
        span("xpu_runtime", "urEnqueueKernelLaunch", 1, 1, correlation=1),
        span("xpu_driver", "zeCommandListAppendLaunchKernel", 1, 1, correlation=1),
        span("mtia_runtime", "launch", 3, 1, correlation=2, stream_id="0"),
        span("hpu_op", "graph", 4, 1),
        span("collective_comm", "xccl::allreduce", 5, 1),
        span("mtia_ccp_events", "ccp", 5, 1, 17, 3, stream=2),
        kernel("gemm", 6, 1, **{"l0 queue": "0x11", "appended": "12.5"}),
    )
    assert raw.calls["api"].to_list() == ["runtime", "driver", "runtime", "runtime"]
    assert raw.ops["name"].to_list() == ["xccl::allreduce"]
    assert sorted(raw.activities.select("device", "stream").rows()) == [(0, 7), (17, 2)]


def test_cupti_monitor_copies_get_kineto_names():
    copy = {"copy kind": "HtoD", "src kind": "pinned", "dst kind": "device", "bytes": 8}
    raw = read_events(
        span("gpu_memcpy", "Memcpy", 1, 1, 0, 7, **copy),
        span("gpu_memset", "Memset", 3, 1, 0, 7, **{"memory kind": "device", "value": 0, "bytes": 4}),
        kernel("k", 5, 1),
    )
    assert raw.activities["name"].to_list() == ["Memcpy HtoD (Pinned -> Device)", "Memset (Device)", "k"]


def test_peer_copies_and_moved_lanes():
    peer = {"fromDevice": 1, "inDevice": 1, "toDevice": 3, "stream": 20, "bytes": 8, "correlation": 2}
    raw = read_events(
        span("gpu_memcpy", "Memcpy PtoP (Device -> Device)", 1, 1, 1, 1_000_020, **peer),
        kernel("k", 5, 1, stream=9) | {"tid": 1_000_009},
    )
    assert raw.activities.select("device", "stream", "peer_device").rows() == [(0, 9, None), (1, 20, 3)]


def test_sync_records_say_minus_one_for_no_stream():
    def sync(name: str, ts: int, tid: int, **args: object) -> dict:
        return span("cuda_sync", name, ts, 1, 0, tid, device=0, **args)

    raw = read_events(
        kernel("k", 1, 1),
        sync("Context Sync", 1, 1, stream=4294967295, correlation=5),
        sync("Stream Sync", 2, 1_000_007, correlation=6),
        sync("Event Sync", 3, 1, stream=-1, wait_on_stream=7, wait_on_cuda_event_record_corr_id=-1),
    )
    assert raw.gpu_syncs.select("stream", "wait_on_stream", "wait_on_record_correlation").rows() == [
        (-1, None, None), (7, None, None), (-1, 7, -1),
    ]  # fmt: skip
    assert raw.activities.height == 1


def test_unfinished_spans_are_kept_and_marked():
    raw = read_events(
        span("user_annotation", "open", 1, 5, finished=False),
        span("cpu_op", "a", 2, 1, finished=True),
        kernel("k", 1, 1),
    )
    assert raw.ops.select("name", "finished").rows() == [("open", False), ("a", True)]


def test_frames_keep_parents_and_lose_addresses():
    raw = read_events(
        span("python_function", "<built-in method item of Tensor object at 0x7f31c2a0>", 1, 5)
        | {"args": {"Python id": 1, "Python parent id": None}},
        span("python_function", "nn.Module: Linear_0", 2, 2)
        | {"args": {"Python id": 2, "Python parent id": 1, "CallFrom": "a.py:12"}},
        span("python_function", "at 0x7f is no address.py(3): f", 3, 1),
    )
    assert raw.frames.select("name", "python_id", "parent_id", "call_from").rows() == [
        ("<built-in method item of Tensor object>", 1, -1, None),
        ("nn.Module: Linear_0", 2, 1, "a.py:12"),
        ("at 0x7f is no address.py(3): f", -1, -1, None),
    ]


def test_huge_numbers_and_odd_types_in_args():
    raw = read_events(
        span("cpu_op", "a", 1, 1, **{"External id": 2**64 - 1, "Sequence number": "12", "Comms Id": 2**63 + 5}),
        span("cpu_op", "b", 2, 1, **{"External id": 10**30, "Input Dims": [[1]]}),
        kernel("k", 3, 1, **{"registers per thread": "N/A", "grid": "grid(100,)", "graph node id": (3 << 32) | 9}),
        {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1, "tid": 1, "ts": 1,
         "args": {"Addr": 2**64 - 8, "Bytes": -5, "Device Type": 1, "Device Id": 0, "Total Allocated": 3}},
    )  # fmt: skip
    assert raw.ops.select("external_id", "seq", "input_dims").rows() == [(None, 12, None), (None, -1, "[[1]]")]
    assert raw.activities.select("registers", "grid_x", "graph_node").rows() == [(None, None, (3 << 32) | 9)]
    assert raw.memory.select("address", "size_bytes", "allocated_bytes").rows() == [(2**64 - 8, -5, 3)]


def test_collectives_and_triton_point_at_their_ops():
    raw = read_events(
        span("cpu_op", "triton_poi_fused_0", 9, 1, kernel_hash="abc", kernel_file="/tmp/a.py", kernel_num_gb=0.5),
        span(
            "cpu_op", "record_param_comms", 5, 2,
            **{"Collective name": "allreduce", "dtype": "BFloat16", "In msg nelems": 8, "Group size": 2,
               "Process Group Name": "0", "Process Group Ranks": "[0, 1]", "Is asynchronized op": 1},
        ),
        span("cpu_op", "c10d::allreduce_", 4, 4),
    )  # fmt: skip
    assert raw.ops["name"].to_list() == ["c10d::allreduce_", "record_param_comms", "triton_poi_fused_0"]
    assert raw.collectives.rows(named=True) == [
        {"op": 1, "collective": "allreduce", "dtype": "BFloat16", "in_elements": 8, "out_elements": None,
         "group_size": 2, "group_name": "0", "group_ranks": "[0, 1]", "is_async": True},
    ]  # fmt: skip
    assert raw.triton.select("op", "kernel_file", "kernel_hash", "num_gb", "flop").rows() == [
        (2, "/tmp/a.py", "abc", 0.5, None)
    ]


def test_rows_are_sorted_by_thread_start_and_longest_first():
    raw = read_events(
        span("cpu_op", "child", 5, 1, 9, 2), span("cpu_op", "late", 7, 1, 9, 2), span("cpu_op", "parent", 5, 3, 9, 2),
        span("cpu_op", "first thread", 99, 1, 9, 1), span("cpu_op", "twin", 5, 1, 9, 2),
    )  # fmt: skip
    assert raw.ops["name"].to_list() == ["first thread", "parent", "child", "twin", "late"]
    assert raw.threads["tid"].to_list() == ["1", "2"]


def test_pids_of_every_type_become_text():
    raw = read_events(
        span("cpu_op", "a", 1, 1, 7.0, 8), span("cpu_op", "b", 2, 1, "7", "8"), span("cpu_op", "c", 3, 1, None, ""),
        span("cpu_op", "d", 4, 1, -1107294656, -1),
    )  # fmt: skip
    assert raw.threads.select("pid", "tid").rows() == [("-1107294656", "-1"), ("7", "8"), ("", "")]
    assert raw.ops.filter(pl.col("thread") == 1)["name"].to_list() == ["a", "b"]


def test_overlong_names_stay_distinct():
    raw = read_events(span("cpu_op", "x" * 20000 + "1", 1, 1), span("cpu_op", "x" * 20000 + "2", 2, 1))
    assert raw.ops["name"].n_unique() == 2
    assert raw.ops["name"].cast(pl.String).str.len_chars().max() <= 16384
    assert codes(raw) == {"long-name": 2}
