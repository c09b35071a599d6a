"""Write docs/evidence/ops.md and its pictures from the evidence of this folder.

python benchmarks/h200/ops/page.py [--evidence FOLDER] [--out FOLDER]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [p for p in (str(HERE),) if p not in sys.path]

import ops_plan as plan

from tilewright.report import ops_evidence, ops_page


def main(arguments: list[str] | None = None) -> int:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--evidence", type=Path, default=HERE)
    p.add_argument("--out", type=Path, default=HERE.parents[2] / "docs" / "evidence")
    a = p.parse_args(arguments)
    current = {c.function: plan.sha256(c) for c in plan.cases()}
    for path in ops_page.write(a.out, ops_evidence.read(a.evidence), current):
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
