"""Pages of real recordings in a real browser, from `file://`, without a network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.conftest import SHARED
from tests.web.browser import play, require

from gapless import api
from gapless.analyses.timeline import timeline
from gapless.model.timeline import Timeline
from gapless.render.html import render_html
from gapless.render.json_ import to_dict
from gapless.render.wire import origin_ns

pytestmark = pytest.mark.browser

REPO = Path(__file__).resolve().parents[2]
KEPT = [
    *(REPO / "src" / "gapless" / "samples" / f"layer_sync.{name}.json.gz" for name in ("before.stack", "after")),
    *(
        REPO / "tests" / "data" / "pairs" / "host_work" / f"{name}.json.gz"
        for name in ("three_faults.before", "late_fault.after")
    ),
]
HANDED = [
    SHARED / name
    for name in (
        "h200/pairs/item_sync.before.stack.json.gz", "h200/pairs/dataloader.before.json.gz", "h200/ddp/straggler.rank0.json.gz",
        "h200/odd/two_devices.json.gz", "h200/odd/cpu_activity_only.json.gz", "h200/odd/cuda_activity_only.json.gz",
        "public/hta/cuda_graphs.json.gz", "public/tracelens/mi300_triton.json.gz", "invalid/hostile_names.json",
        "invalid/truncated.json",
    )
]  # fmt: skip


def write_page(trace: Path, folder: Path) -> tuple[dict[str, Any], Timeline, Path]:
    loaded = api.load(trace)
    view = api.report(loaded)
    drawn = timeline(loaded.study(), view.report.findings)
    page = folder / f"{trace.name.split('.json')[0]}.html"
    page.write_text(render_html(view.report, drawn), "utf-8")
    return to_dict(view.report), drawn, page


def check(report: dict[str, Any], drawn: Timeline, seen: dict[str, Any]) -> None:
    """What the page shows is what the JSON report says, and a click on a finding lands on its event."""
    assert seen["complaints"] == []
    assert seen["requests"] == []
    assert seen["panels"] == seen["frames"]
    step = report["step"]
    assert seen["numbers"] == {key: pytest.approx(step[key]) for key in seen["numbers"]}
    accounts = report["accounting"] + [h for h in report["host"] if h["role"] in ("main", "autograd")]
    others = [h for h in report["host"] if h["role"] not in ("main", "autograd")]
    assert [a["wall"] for a in seen["accounts"]] == [a["wall_ns"] for a in accounts + others]
    for shown, told in zip(seen["accounts"], accounts + others, strict=True):
        assert sorted(shown["parts"]) == sorted(p["ns"] for p in told["parts"])
        assert sum(shown["parts"]) == shown["wall"]
        assert shown["pixels"] == pytest.approx(shown["width"], abs=1.5) or not shown["parts"]
    assert seen["findings"] == [f["code"] for f in report["findings"]]
    assert seen["cannotTell"] == [c["code"] for c in report["checks"]["cannot_tell"]]
    assert seen["overflow"] == {"1280": 0, "390": 0}
    origin = origin_ns(drawn)
    assert seen["buttons"] == sorted({p.finding for p in drawn.places})
    for finding, click in seen["clicks"].items():
        first = next(p for p in drawn.places if p.finding == int(finding))
        assert click["box"] == first.box
        if first.box >= 0:
            assert click["start"] == first.start_ns - origin
            assert click["inView"]
            assert click["drawn"]
            assert click["detail"].startswith(drawn.strings[drawn.boxes.name[first.box]][:20])
            assert click["hash"].endswith(f"&box={first.box}")


def test_pages_of_kept_recordings_equal_their_json_reports(tmp_path: Path) -> None:
    require()
    made = [write_page(trace, tmp_path) for trace in KEPT]
    for (report, drawn, _), seen in zip(made, play("pages", *(page for *_, page in made)), strict=True):
        check(report, drawn, seen)
    assert sum(len(report["findings"]) for report, *_ in made) >= 4


def test_pages_of_handed_recordings_equal_their_json_reports(shared: Path, tmp_path: Path) -> None:
    require()
    made = [write_page(trace, tmp_path) for trace in HANDED]
    for (report, drawn, _), seen in zip(made, play("pages", *(page for *_, page in made)), strict=True):
        check(report, drawn, seen)


def test_every_way_to_move_works(tmp_path: Path) -> None:
    require()
    report, drawn, page = write_page(KEPT[2], tmp_path)
    seen = play("hands", page, "aten::mm")

    def span(view: dict[str, float]) -> float:
        return view["end"] - view["start"]

    start = seen["start"]
    assert seen["wheelUnfocused"] == {"view": start, "scrolled": True}
    assert span(seen["wheelFocused"]) < span(start)
    assert span(seen["dragged"]) == pytest.approx(span(seen["wheelFocused"]))
    assert seen["dragged"]["start"] > seen["wheelFocused"]["start"]
    assert span(seen["w"]) < span(seen["fit"])
    assert span(seen["s"]) == pytest.approx(span(seen["fit"]), rel=1e-6)
    assert seen["d"]["start"] > seen["s"]["start"]
    assert seen["a"]["start"] == pytest.approx(seen["s"]["start"], abs=span(seen["s"]) / 1000)
    assert span(seen["all"]) > span(seen["fit"])

    matching = [i for i, name in enumerate(drawn.boxes.name) if "aten::mm" in drawn.strings[name]]
    assert seen["found"] == f"{len(matching)} found"
    assert seen["first"] in matching
    assert seen["second"] in matching
    assert seen["second"] != seen["first"]
    assert seen["status"].endswith(f" of {len(matching)}")
    assert "aten::mm" in seen["name"]
    assert seen["focusAfterEscape"] == "stage"
    assert seen["afterArrow"] == seen["beforeArrow"] + 1

    assert seen["help"]
    assert seen["helpClosed"]
    assert seen["clicked"]["got"] == seen["clicked"]["wanted"]
    assert seen["clicked"]["wanted"] in seen["tip"]

    assert seen["hash"].endswith(f"&box={seen['afterArrow']}")
    assert seen["reopened"]["box"] == seen["afterArrow"]
    assert span(seen["reopened"]["view"]) == pytest.approx(span(seen["viewAtHash"]), rel=0.01)

    assert seen["sortedDown"] == sorted(seen["sortedDown"], reverse=True)
    assert seen["sortedUp"] == sorted(seen["sortedUp"])
    assert seen["filtered"] == 0
    csv, fix = seen["copied"]
    assert csv.splitlines()[0].split(",")[0] == seen["heads"][0]
    assert len(csv.splitlines()) - 1 == len(next(rows for rows in report["tables"].values() if rows))
    assert fix.strip() == report["findings"][0]["fix"].strip()
    assert seen["complaints"] == []
