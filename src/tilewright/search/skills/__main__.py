"""``python -m tilewright.search.skills [NAME …]``: check skills on their examples and write ``admitted.json`` anew."""

from __future__ import annotations

import sys

from ._admission import admit, save
from ._skill import all_skills


def main(names: list[str]) -> int:
    """Exit code: 0 all admitted, 1 some not."""
    known = {s.name: s for s in all_skills()}
    if unknown := [n for n in names if n not in known]:
        print(f"no skill '{unknown[0]}'; there are {', '.join(known)}", file=sys.stderr)
        return 2
    bad = 0
    for name in names or known:
        found = admit(known[name])
        print(f"{name}: {found.verdict or 'nothing'} at {found.sites} places {found.reason}".rstrip(), flush=True)
        bad += not found.admitted
        if found.admitted:
            save([found])
    return min(bad, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
