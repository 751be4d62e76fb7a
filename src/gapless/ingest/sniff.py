"""What does a file look like that is no trace, and what should its owner do instead?"""

from __future__ import annotations

import re

_MAGIC: tuple[tuple[bytes, str, str], ...] = (
    (b"PK\x03\x04", "a zip archive", "unpack it and pass the trace inside"),
    (b"SQLite format 3\x00", "an SQLite database, as Nsight Systems exports it", "record with torch.profiler instead"),
    (b"\x28\xb5\x2f\xfd", "a zstd archive", "unpack it with `zstd -d` first"),
    (b"\xfd7zXZ\x00", "an xz archive", "unpack it with `xz -d` first"),
    (b"BZh", "a bzip2 archive", "unpack it with `bzip2 -d` first"),
    (b"\x7fELF", "a program", "pass the trace it recorded"),
    (b"%PDF", "a PDF document", "pass the trace itself"),
    (b"\x89PNG", "a PNG picture", "pass the trace itself"),
)

_RECORD = "export one with `torch.profiler.profile(...).export_chrome_trace(path)`"

_KEYS: tuple[tuple[frozenset[str], str, str], ...] = (
    (frozenset(("schema", "nodes")), "an execution trace (Chakra), which has no GPU times", _RECORD),
    (
        frozenset(("segments", "device_traces")),
        "a CUDA memory snapshot",
        "view it at pytorch.org/memory_viz, or " + _RECORD,
    ),
    (frozenset(("rocprofiler-sdk-tool",)), "a rocprofiler result", _RECORD),
    (frozenset(("schema", "trust", "verdict")), "a gapless report, not the trace it was made from", "pass the trace"),
    (frozenset(("cells", "nbformat")), "a notebook", "pass the trace it recorded"),
)

_TOP_KEY = re.compile(rb'"([^"\\]{1,60})"\s*:')


def looks_like(head: bytes, name: str) -> tuple[str, str]:
    """(what the file seems to be, what to do next), from its first bytes (unpacked) and its name."""
    text = head.lstrip()
    lower = text[:64].lower()
    if not text:
        return "an empty file", "check that the recording finished and the file was copied whole"
    for magic, what, advice in _MAGIC:
        if head.startswith(magic):
            return what, advice
    if head[:1] == b"\x80" and head[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05"):
        return "a Python pickle, such as a CUDA memory snapshot", "view it at pytorch.org/memory_viz, or " + _RECORD
    if name.endswith((".xplane.pb", ".xplane")) or b"/host:CPU" in head[:4096] or b"/device:" in head[:4096]:
        return "an XPlane protobuf of JAX or TensorFlow", _RECORD
    if name.endswith((".nsys-rep", ".qdrep", ".ncu-rep")):
        return "a report of Nsight Systems or Nsight Compute", "record with torch.profiler instead"
    if head[:1] == b"\x0a" and not _is_text(head):
        return "a Perfetto protobuf (.pftrace)", "record with the JSON exporter: " + _RECORD
    if lower.startswith((b"<!doctype html", b"<html", b"<head")):
        return "an HTML page, perhaps a download that failed", "download the raw file again"
    if lower.startswith(b"<"):
        return "an XML or HTML document", "download the raw file again"
    if lower.startswith(b"version https://git-lfs"):
        return "a Git LFS pointer, not the file itself", "run `git lfs pull`"
    if lower.startswith(b"{"):
        return _object(head)
    if lower.startswith(b"["):
        return _list(text)
    if _is_text(head):
        return "plain text", _RECORD
    return "binary data of an unknown kind", _RECORD


def _object(head: bytes) -> tuple[str, str]:
    keys = {key.decode("utf-8", "replace") for key in _TOP_KEY.findall(head[: 1 << 16])}
    for signs, what, advice in _KEYS:
        if signs <= keys:
            return what, advice
    shown = ", ".join(sorted(key for key in keys if key.isprintable())[:4])
    return f"JSON without a traceEvents list (keys: {shown or 'none'})", _RECORD


def _list(text: bytes) -> tuple[str, str]:
    if text[1:].lstrip().startswith(b"["):
        return "a memory timeline (a list of lists)", "open it as it is, or " + _RECORD
    return "a JSON list of something other than trace events", _RECORD


def _is_text(head: bytes) -> bool:
    sample = head[:2048]
    odd = sum(byte < 32 and byte not in (9, 10, 12, 13, 27) for byte in sample)
    return odd * 20 < len(sample)
