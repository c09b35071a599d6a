"""Running a kernel on a CUDA device, inside a sealed child.

``machine.py`` says what device there is; ``session.py`` is the parent's side; ``role.py`` runs in the child and uses
``memory.py`` (guarded buffers), ``watch.py`` (poison and guards around fresh buffers), ``launches.py`` (Triton launches,
watched and changed on purpose), ``errors.py`` (what the driver still has to say) and ``calls.py`` (streams, graphs).
"""
