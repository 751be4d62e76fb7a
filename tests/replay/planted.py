"""Small traces whose events can be changed before they are read: what a broken or edited file looks like."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from tests.rules.factory import H200, MUL, Script

from gapless.analyses.study import Study, study
from gapless.ingest import read

Event = dict[str, Any]

STEPS, KERNELS, US = 4, 6, 40


def events(*, streams: int = 1, waits: bool = False) -> list[Event]:
    """Four steps of six ops with a kernel of 40 us each, on the streams in turn; the GPU falls behind the host, which
    waits for it at the end, or with `waits` at the end of every step."""
    script = Script()
    for number in range(STEPS):
        with script.mark(f"ProfilerStep#{number}"):
            for k in range(KERNELS):
                with script.op("aten::mul"):
                    script.kernel(MUL, US, stream=7 + 13 * (k % streams))
            if waits:
                script.synchronize()
        script.now += 20
    script.synchronize()
    return script.events


def kernels(of: list[Event]) -> list[Event]:
    return [event for event in of if event["cat"] == "kernel"]


def launches(of: list[Event]) -> list[Event]:
    return [event for event in of if event["name"] == "cudaLaunchKernel"]


def studied(of: list[Event], **top: object) -> Study:
    """What gapless makes of a file with these events."""
    whole = {"schemaVersion": 1, "deviceProperties": [H200], **top, "traceEvents": of}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        path.write_text(json.dumps(whole))
        return study(read(path))
