"""Triton launches on a device: watched, and changed on purpose (``experiments.py``)."""

from __future__ import annotations

from typing import Any

from triton.runtime import autotuner
from triton.runtime.jit import JITFunction

from ...kernel.languages import _launches
from .experiments import Experiments


class Recorder(_launches.Recorder):
    """Around ``JITFunction.run`` and ``Autotuner._bench``. Which configuration a tuned kernel takes is chosen as in
    ``kernel/languages/_launches.py``."""

    def __init__(self, experiments: Experiments) -> None:
        super().__init__(None, {})  # type: ignore[arg-type]  # nothing is evaluated elsewhere
        self.experiments = experiments

    def install(self) -> None:
        recorder, original = self, JITFunction.run
        tune = autotuner.Autotuner._bench

        def run(fn: JITFunction, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
            def launch(warm: bool) -> Any:
                return original(fn, *args, grid=grid, warmup=warm, **kwargs)

            if warmup:
                return launch(True)
            given = (*args, *kwargs.values())
            return recorder.experiments.around(fn.fn.__name__, lambda: launch(False), given, lambda: launch(True))

        def bench(tuner: autotuner.Autotuner, *args: Any, config: Any, **meta: Any) -> list[float]:
            return recorder.bench(tuner, tune, args, config, meta)

        JITFunction.run = run
        autotuner.Autotuner._bench = bench
