"""Keeping a measurement and showing it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from simulated_gpu import FakeBackend, FakeGpu

from gapless.model.errors import UsageError
from gapless.runtime.timing import Measurement, Options
from gapless.runtime.timing.measure import measure_with
from gapless.runtime.timing.screen import time_text
from gapless.runtime.timing.subject import Subject


@pytest.fixture(scope="module")
def measured() -> Measurement:
    gpu = FakeGpu()
    options = Options(budget_s=0.5, warmup_s=0.01, name="<b>kernel</b>")
    return measure_with(FakeBackend(gpu), Subject(lambda: gpu.launch(80.0)), options)


def test_round_trip_keeps_every_sample(measured, tmp_path):
    path = tmp_path / "m.json"
    measured.save(path)
    again = Measurement.load(path)
    assert again.to_dict() == measured.to_dict()
    assert again["t_gpu"].samples_us == measured["t_gpu"].samples_us
    assert str(again) == str(measured)
    assert [p.name for p in tmp_path.iterdir()] == ["m.json"]


def test_a_failed_save_leaves_nothing_behind(measured, tmp_path):
    (tmp_path / "m.json").mkdir()
    with pytest.raises(OSError):
        measured.save(tmp_path / "m.json")
    assert [p.name for p in tmp_path.iterdir()] == ["m.json"]


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"schema": "gapless.measure/9"}', '"x"', '{"schema":"gapless.measure/1"}']
)
def test_foreign_files_are_refused_in_one_line(tmp_path, text):
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(UsageError, match="not a measurement") as caught:
        Measurement.load(path)
    assert "\n" not in str(caught.value)


def test_a_missing_file_says_so(tmp_path):
    with pytest.raises(UsageError, match="cannot be read"):
        Measurement.load(tmp_path / "no.json")


def test_additions_by_later_versions_are_ignored(measured):
    data = json.loads(measured.to_json())
    data["later"] = 1
    data["verdict"]["later"] = 1
    assert Measurement.from_dict(data).verdict == measured.verdict


def test_screen_is_one_screen_and_html_is_escaped(measured):
    screen = str(measured)
    assert len(screen.splitlines()) < 45
    assert "t_gpu" in screen and "gpu-bound" in screen
    page = measured._repr_html_()
    assert "<b>kernel</b>" not in page and "&lt;b&gt;kernel" in page


@given(st.floats(1e-4, 1e8), st.floats(1e-6, 1e6))
def test_times_are_printed_with_no_digit_beyond_their_interval(us, half):
    text = time_text(us, half)
    number, unit = text.split()
    scale = {"s": 1e6, "ms": 1e3, "us": 1.0, "ns": 1e-3}[unit]
    assert abs(float(number) * scale - us) <= max(10 * half, us * 1e-3)
    decimals = len(number.partition(".")[2])
    assert decimals == 0 or 10.0**-decimals * scale >= half * 0.0999 or 10.0**-decimals * scale >= us * 1e-5


def test_known_texts():
    assert time_text(1234.5) == "1.23 ms"
    assert time_text(3.2, 0.04) == "3.20 us"
    assert time_text(50123.4, 2000) == "50 ms"
    assert time_text(0.25) == "250 ns"
