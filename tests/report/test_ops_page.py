"""The page of measured operators, its pictures and the evidence files behind it, on samples that were never measured."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from tilewright.errors import UserError
from tilewright.measure.record import Arm, Baseline, Ceilings, Floor, Interval, Measurement, Ratio, WorkloadResult
from tilewright.measure.record import Figure as Measured
from tilewright.report import ops_evidence, ops_page
from tilewright.report.ops_picture import picture, short

SVG = "{http://www.w3.org/2000/svg}"
LIGER = "h200_peers.liger_softmax_backward"


def around(median: float, half: float = 0.01) -> Interval:
    return Interval(low=median * (1 - half), median=median, high=median * (1 + half), level=0.999)


def arm(name: str, seconds: float, extra: int = 0) -> Arm:
    return Arm(name=name, blocks=((seconds,) * 5,) * 3, time=around(seconds), checked=2, extra_bytes=extra)


def figure(ratio: float, answer: str, cache: str = "warm", launch: str = "plain") -> Measured:
    arms = (arm("candidate", 100e-6), arm("twin", 100e-6), arm("eager", 250e-6), arm(LIGER, ratio * 100e-6, 1 << 20))
    ratios = tuple(Ratio(baseline=n, interval=around(r), variation=0.01, answer=answer) for n, r in
                   (("eager", 2.5), (LIGER, ratio)))  # fmt: skip
    return Measured(cache=cache, launch=launch, arms=arms, ratios=ratios, noise=0.03, honest=LIGER, answer=answer)


def measurement(ratio: float, answer: str, dims: dict[str, int], **more: Any) -> Measurement:
    w = WorkloadResult(
        name="w", dims=dims, dtype="bfloat16", answer=answer,
        figures=(figure(ratio, answer), figure(ratio * 1.1, answer, launch="graph"), figure(ratio, answer, "cold")),
        floor=Floor(seconds=80e-6, bytes=1 << 28, flops=0, bandwidth=4e12, rate=0, bound="memory", fraction=0.8),
    )  # fmt: skip
    wrong = Baseline(name="conch.rms", kind="peer", status="wrong", reason="out[3] is 1 | 2, expected <3>")
    given = {
        "answer": answer, "reason": "because", "kernel_sha256": "k", "task_sha256": "t", "protocol": "p" * 64,
        "protocol_version": "1-quick", "workloads": (w,), "baselines": (wrong,), "versions": {"torch": "2.11"},
        "ceilings": Ceilings(device="cuda", name="A Card"), "created": "2026-12-01T00:00:00+00:00", "verdict": "v",
        "contract": "c", "device": "cuda", "state": {"before": {"gpu": {"driver": "580"}}, "after": {}},
    }  # fmt: skip
    return Measurement(**(given | more))


def evidence(ratio: float = 1.5, answer: str = "faster", function: str = "softmax", direction: str = "backward",
             size: int = 8192, **more: Any) -> ops_evidence.Evidence:  # fmt: skip
    m = measurement(ratio, answer, {"M": size, "N": 64}, **more)
    return ops_evidence.of(m, function, direction, headline=size > 100, operator_sha256="now",
                           versions={"liger-kernel": "0.8.5"})  # fmt: skip


def test_evidence_keeps_what_is_printed_and_no_samples(tmp_path: Path) -> None:
    path = ops_evidence.write(tmp_path, evidence())
    assert path.name == "softmax.backward.M8192-N64.json"
    assert list(tmp_path.iterdir()) == [path], "nothing is left half written"
    (back,) = ops_evidence.read(tmp_path)
    assert back == evidence()
    first = back.figures[0]
    assert first.ratio() is not None and first.ratio().interval.median == 1.5  # noqa: PT018
    assert {a.name: a.calls for a in first.arms}["candidate"] == 15
    assert "blocks" not in path.read_text()
    assert back.versions == {"torch": "2.11", "liger-kernel": "0.8.5"}
    assert back.machine["before"]["driver"] == "580"


def test_evidence_is_of_one_workload() -> None:
    m = measurement(1.5, "faster", {"M": 1})
    with pytest.raises(UserError, match="one workload"):
        ops_evidence.of(m.model_copy(update={"workloads": m.workloads * 2}), "f", "forward", headline=True,
                        operator_sha256="")  # fmt: skip


def test_other_files_are_left_alone_and_broken_ones_are_told(tmp_path: Path) -> None:
    (tmp_path / "machine.json").write_text("{}")
    assert ops_evidence.read(tmp_path) == []
    (tmp_path / "softmax.forward.M1.json").write_text("{}")
    with pytest.raises(UserError, match=r"softmax\.forward\.M1\.json is no evidence"):
        ops_evidence.read(tmp_path)


def test_without_evidence_the_page_says_so() -> None:
    assert ops_page.NONE in ops_page.page([])


def test_losses_come_first_with_their_numbers() -> None:
    found = [evidence(1.5), evidence(0.8, "slower", "rope", "forward"), evidence(1.0, "too noisy", "swiglu", "forward")]
    text = ops_page.page(found)
    losses = text[text.index("## Losses") : text.index("## softmax")]
    assert "`rope` forward, M=8192, N=64: 0.800 (0.792 to 0.808) against Liger" in losses
    assert "`swiglu` forward, M=8192, N=64: too noisy, because" in losses
    assert "softmax" not in losses
    assert (
        "Of 3 measurements: 1 faster, 1 slower, 1 too noisy. Of 3 large workloads bound by memory, 0 reach 90%" in text
    )


def test_every_number_of_a_row() -> None:
    text = ops_page.page([evidence()], {"softmax": "now"})
    row = next(line for line in text.splitlines() if line.startswith("| backward"))
    cells = [c.strip() for c in row.strip("|").split("|")]
    assert cells[:2] == ["backward, M=8192, N=64", "faster"]
    assert re.sub(r"\s", " ", cells[2]) == "100 µs"
    assert cells[3:5] == ["80%", "Liger"]
    assert cells[5].startswith("1.50 (1.48 to 1.52)")
    assert cells[6].startswith("1.65")
    assert cells[7].startswith("1.50")
    assert "1.00" in cells[8]
    assert "MiB" in cells[8]
    assert "†" not in text
    assert "conch, backward: wrong, out[3] is 1 / 2, expected &lt;3>" in text
    assert "| backward, M=8192, N=64 | 100 | 250 | 150 |" in text


def test_what_was_measured_with_an_earlier_kernel_is_marked() -> None:
    text = ops_page.page([evidence()], {"softmax": "other"})
    assert "M=8192, N=64 †" in text
    assert "† measured with an earlier text" in text


def test_machines_and_versions_stand_at_the_top_each_once() -> None:
    found = [evidence(size=1), evidence(size=2), evidence(size=3, versions={"torch": "2.13"})]
    lines = [line for line in ops_page.page(found).splitlines() if line.startswith("* A Card")]
    assert [("torch 2.11" in x, "2 measurements" in x) for x in lines] == [(True, True), (False, False)]
    assert "driver 580" in lines[0]


def test_a_measurement_that_was_refused_has_a_row_and_no_numbers() -> None:
    m = measurement(1.0, "refused", {"M": 8})
    bare = m.workloads[0].model_copy(update={"figures": (), "floor": None})
    e = ops_evidence.of(
        m.model_copy(update={"workloads": (bare,)}), "rope", "forward", headline=True, operator_sha256=""
    )
    text = ops_page.page([e])
    assert "| forward, M=8 | refused | — | — | — | — | — | — | — |" in text
    assert "refused" in picture([e])


def boxes(svg: str, colour: str) -> list[float]:
    return [float(r.get("width", 0)) for r in ET.fromstring(svg).iter(f"{SVG}rect") if r.get("fill") == colour]


def test_the_picture_tells_ratio_interval_and_floor() -> None:
    root = ET.fromstring(picture([evidence(1.5), evidence(0.5, "slower", size=64)]))
    dots = {c.get("fill"): float(c.get("cx", 0)) for c in root.iter(f"{SVG}circle")}
    one = next(float(e.get("x1", 0)) for e in root.iter(f"{SVG}line") if e.get("class") == "one")
    assert dots["#1a7f37"] > one > dots["#cf222e"], "faster lies right of 1, slower left"
    words = [t.text for t in root.iter(f"{SVG}text")]
    assert {"1.50×", "0.500×", "Liger", "M=64, N=64", "M=8192, N=64"} <= set(words)
    green, grey = boxes(picture([evidence(1.5)]), "#1a7f37"), boxes(picture([evidence(1.5)]), "#afb8c1")
    assert green[0] / grey[0] == pytest.approx(1.5, rel=0.01), "the kernel takes 1/1.5 of the time, so 1.5 of the share"


def test_pictures_are_written_for_each_function_and_old_ones_go(tmp_path: Path) -> None:
    (tmp_path / "ops").mkdir()
    (tmp_path / "ops" / "gone.svg").write_text("")
    made = ops_page.write(tmp_path, [evidence(), evidence(function="swiglu", direction="forward")])
    assert sorted(p.name for p in made) == ["ops.md", "softmax.svg", "swiglu.svg"]
    assert sorted(p.name for p in (tmp_path / "ops").iterdir()) == ["softmax.svg", "swiglu.svg"]
    for link in re.findall(r"\]\((ops/\w+\.svg)\)", (tmp_path / "ops.md").read_text()):
        assert (tmp_path / link).is_file()


@pytest.mark.parametrize(("name", "wanted"), [
    ("liger_kernel.transformers.functional.liger_softmax", "Liger"), ("h200_peers.fla_rms_norm", "FLA"),
    ("fla.modules.activations.swiglu", "FLA"), ("conch.ops.activation.silu_and_mul.silu_and_mul", "conch"),
    ("h200_peers.cut_linear_cross_entropy", "CCE"), ("h200_peers.torch_softmax_backward", "PyTorch's own"),
    ("max-autotune", "max-autotune"), ("eager", "eager"),
])  # fmt: skip
def test_names_of_baselines(name: str, wanted: str) -> None:
    assert short(name) == wanted
