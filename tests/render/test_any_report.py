"""Whatever a report holds, every renderer gives a bounded, harmless answer."""

from __future__ import annotations

import json

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from gapless.model.report import Report
from gapless.render import json_, markdown, text

PLAIN = st.none() | st.booleans() | st.integers(-(10**15), 10**15) | st.floats() | st.text(max_size=20)
ROW = st.dictionaries(st.text(max_size=8), PLAIN, max_size=3)
TRACES = st.fixed_dictionaries(
    {"path": st.text(max_size=30), "devices": st.just([{"index": 0, "name": "x"}]), "rank": st.none() | st.integers()}
)
REPORTS = st.builds(
    Report,
    trace=TRACES,
    tables=st.dictionaries(st.text(max_size=8), st.lists(ROW, max_size=2), max_size=2),
)


@settings(
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # a report is large: shrinking one takes minutes
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(REPORTS)
def test_every_renderer_copes(report: Report) -> None:
    screen = text.render(report, width=80)
    assert screen.count("\n") <= text.SCREEN_LINES
    full = text.render(report, full=True, width=80)
    assert all(c.isprintable() or c == "\n" for c in full)
    assert markdown.render(report, full=True).endswith("\n")
    assert json.loads(json_.render(report))["schema"] == json_.to_dict(report)["schema"]
