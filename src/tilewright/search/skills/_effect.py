"""What a skill gains on its example: the example before against the example after, by the protocol of ``bench``. It is a
record of one machine, not a promise. Skills for C are measured on the CPU, those for Triton on a GPU."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from ...errors import Unsupported
from ...measure.bench import Options, bench
from ...measure.protocol import PROTOCOL, quick
from ...measure.record import Measurement
from ...task.task import Workload
from ._admission import Effect
from ._skill import EXAMPLES, Site, Skill

SIZES = {"matmul.py": {"M": 192, "K": 192, "N": 192}, "row_softmax.py": {"M": 64, "N": 2000},
         "scaled_softmax.py": {"M": 4096, "N": 4096}, "add_relu.py": {"N": 1 << 20}}  # fmt: skip
LARGE = {"matmul.py": {"M": 2048, "K": 2048, "N": 2048}, "row_softmax.py": {"M": 4096, "N": 8192}}


def effects(skill: Skill, *, device: str = "cpu", short: bool = False) -> list[Effect]:
    """One for each place of the example where the measurement is lawful. Raises Unsupported for the wrong device."""
    if (device == "cpu") != (skill.language == "native"):
        raise Unsupported(f"{skill.name} can't be timed on {device}", remedy="C on cpu, Triton on cuda")
    kernel = EXAMPLES / skill.example[1]
    found = [_effect(skill, site, kernel, device, short) for site in skill.sites(kernel.read_text())]
    return [e for e in found if e is not None]


def _effect(skill: Skill, site: Site, kernel: Path, device: str, short: bool) -> Effect | None:
    sizes = {**SIZES, **(LARGE if device != "cpu" else {})}[skill.example[0]]
    with TemporaryDirectory() as folder:
        before, after = Path(folder) / f"before{kernel.suffix}", Path(folder) / kernel.name
        before.write_text(kernel.read_text())
        after.write_text(site.text)
        options = Options(device=device, kinds=(), files=(str(before),), workloads=(Workload(dims=sizes),))
        made = bench(str(EXAMPLES / skill.example[0]), str(after), ledger=f"{folder}/ledger.sqlite",
                     protocol=quick() if short else PROTOCOL, options=options).measurement  # fmt: skip
    return None if made is None else of(made, f"{kernel.name}, {site.title}, {sizes}")


def of(made: Measurement, where: str) -> Effect | None:
    """The effect that a measurement shows; None for one that was refused or too noisy."""
    if made.ratio is None or made.answer in ("refused", "too noisy"):
        return None
    name = made.ceilings.name if made.ceilings else made.device
    measured = made.ceilings.measured if made.ceilings else ""
    return Effect(where=where, ratio=made.ratio.median, low=made.ratio.low, high=made.ratio.high, machine=name,
                  measured=measured, by=f"{made.protocol_version}: {made.answer}")  # fmt: skip
