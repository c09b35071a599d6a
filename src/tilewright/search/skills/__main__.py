"""``python -m tilewright.search.skills [--measure cpu|cuda] [NAME …]``: check skills on their examples and write
``admitted.json`` anew; with ``--measure`` time example against result too, for the skills that run on that device."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from ._admission import Admission, admit, save
from ._skill import Skill, all_skills


def main(words: Sequence[str]) -> int:
    """Exit code: 0 all admitted, 1 some not, 2 no such skill."""
    device, names = (words[1], words[2:]) if words[:1] == ["--measure"] and len(words) > 1 else ("", words)
    known = {s.name: s for s in all_skills()}
    if unknown := [n for n in names if n not in known]:
        print(f"no skill '{unknown[0]}'; there are {', '.join(known)}", file=sys.stderr)
        return 2
    found = [_one(known[n], device) for n in names or known]
    return int(not all(a.admitted for a in found))


def _one(skill: Skill, device: str) -> Admission:
    found = admit(skill)
    print(f"{skill.name}: {found.verdict or 'nothing'} at {found.sites} places {found.reason}".rstrip(), flush=True)
    if found.admitted:
        save([_measured(skill, found, device)])
    return found


def _measured(skill: Skill, found: Admission, device: str) -> Admission:
    from ._effect import effects

    if not device or (device == "cpu") != (skill.language == "native"):
        return found
    seen = effects(skill, device=device)
    for e in seen:
        print(f"  {e.ratio:.3g} times as fast ({e.low:.3g} to {e.high:.3g}): {e.where}", flush=True)
    print("" if seen else "  no lawful measurement (too noisy, or refused)", end="" if seen else "\n", flush=True)
    return found.model_copy(update={"effects": tuple(seen)})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
