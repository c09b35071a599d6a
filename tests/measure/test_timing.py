"""The whole way of a timed workload on the CPU. On a busy machine ``too noisy`` is an honest answer and is taken; what is
never taken is a wrong direction."""

from tilewright.measure.record import Ceilings

from .conftest import FAST


def test_a_kernel_against_itself(timed):
    played = timed("right.c", files=("right.c",), kinds=())
    figure = played.result.figure
    assert played.result.answer in ("no measurable gain", "too noisy"), played.result.reason
    assert {a.name for a in figure.arms} == {"candidate", "twin", "right.c"}
    if figure.ratios:
        assert 0.4 < figure.ratio("right.c").interval.median < 2.5


def test_sixty_times_the_work_is_slower(timed):
    """The same comparison with a fault planted in the kernel: the harness can tell."""
    result = timed("slow.c", files=("right.c",), kinds=()).result
    assert result.answer in ("slower", "too noisy"), result.reason
    if result.figure.ratios:
        assert result.figure.ratio("right.c").interval.median < 0.5


def test_a_wrong_baseline_is_shown_as_wrong(timed):
    played = timed("right.c", files=("cheats/phase.c",))
    found = {b.name: b for b in played.baselines}
    assert found["eager"].status == "right"
    assert found["phase.c"].status == "wrong"
    assert "wrong" in found["phase.c"].reason
    assert all(r.baseline != "phase.c" for r in played.result.figure.ratios)


def test_an_unavailable_baseline_has_its_reason(timed):
    played = timed("right.c", kinds=("eager", "graph", "vendor"))
    found = {b.name: b for b in played.baselines}
    assert found["graph"].status == "unavailable"
    assert found["graph"].reason == "CUDA graphs need a GPU"
    assert "names no routine" in found["vendor"].reason


def test_faster_than_the_hardware_is_refused(timed):
    slow_machine = Ceilings(device="cpu", name="a machine of 1 kB/s", read={1024: 1e3}, copy_={1024: 1e3})
    result = timed("right.c", ceilings=slow_machine, protocol=FAST.model_copy(update={"blocks_few": 1})).result
    if len(result.figure.arm("candidate").blocks):
        assert result.answer == "refused"
        assert "than the" in result.reason
        assert "compulsory work" in result.reason


def test_cold_is_a_figure_of_its_own(timed):
    result = timed("right.c", caches=("warm", "cold"), protocol=FAST.model_copy(update={"flush_factor": 0.1})).result
    assert [f.cache for f in result.figures] == ["warm", "cold"]
    assert result.answer == result.figures[0].answer


def test_a_kernel_that_can_not_be_called(timed, tmp_path):
    (tmp_path / "k.c").write_text("#include <stdint.h>\nvoid other(const float *x) {}\n")
    result = timed(str(tmp_path / "k.c")).result
    assert result.answer == "refused"
    assert "exports neither 'kernel_float32' nor 'kernel'" in result.reason


def test_on_a_device_everything_but_the_device_calls(timed):
    """Host memory in a device's place: recipes, events, graphs, judged outputs."""
    from tilewright.prove.device.machine import Device

    played = timed("cheats/clocks.py", kinds=("eager", "graph"), launches=("plain", "graph"),
                   place=Device("host", "host memory", (0, 0)))  # fmt: skip
    assert [(f.cache, f.launch) for f in played.result.figures] == [("warm", "plain"), ("warm", "graph")]
    for figure in played.result.figures:
        assert figure.answer != "refused" or "clocks" in figure.reason, figure.reason
        assert all(arm.checked >= 1 for arm in figure.arms)


def test_a_cheat_on_a_device_shows(timed):
    from tilewright.prove.device.machine import Device

    result = timed("cheats/lazy.py", place=Device("host", "host memory", (0, 0))).result
    assert result.answer == "refused"
