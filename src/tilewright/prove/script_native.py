"""The part of a stand-alone script that calls a kernel in C, with its buffers between unreadable pages.

Plain memory of the heap hides an access out of range, by chance. So each buffer gets pages of its own (anonymous
``mmap``) with a page on both sides, all of it full of 0xFF bytes. Before a call counts, it is made in a forked process
that may not touch the outer pages (``mprotect`` through ctypes): once with data that ends at the upper one, once with
data that begins at the lower one. A crash there, and none without these pages, is an access out of range. The call that
counts runs in the script's own process, so that what a kernel keeps from call to call is kept.
"""

from __future__ import annotations

NATIVE = '''
PAGE = mmap.PAGESIZE
warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)  # its forks only call C


class Fault(Exception):
    """A fault of the kernel, in words."""


class Buffer:
    """A copy of a tensor's memory between two pages of its own, all else 0xFF (NaN); ``end``: it ends at the upper page."""

    def __init__(self, tensor, end):
        storage = tensor.untyped_storage()
        self.source = torch.empty(0, dtype=torch.uint8).set_(storage)
        self.upper = PAGE + -(-storage.nbytes() // PAGE) * PAGE
        whole = torch.frombuffer(mmap.mmap(-1, self.upper + PAGE), dtype=torch.uint8).fill_(255)
        begin = self.upper - storage.nbytes() if end else PAGE
        self.start, self.data = whole.data_ptr(), whole[begin : begin + storage.nbytes()]
        self.data.copy_(self.source)
        self.pointer = self.start + begin + tensor.storage_offset() * tensor.element_size()

    def fence(self, protection):
        for zone in (self.start, self.start + self.upper):
            if ctypes.CDLL(None).mprotect(ctypes.c_void_p(zone), ctypes.c_size_t(PAGE), protection) != 0:
                raise OSError("mprotect failed")


def crashes(function, arguments, fenced=(), protection=0):
    """Whether a call in a process of its own is ended by a signal; it may not read what is fenced (1: not write)."""
    child = os.fork()
    if child == 0:
        for buffer in fenced:
            buffer.fence(protection)
        function(*arguments)
        os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


def outside(function, tensors, rest):
    """An access out of range, in words, or None. Data first ends at an unreadable page, then begins at one."""
    for end, side in ((True, "past the end of"), (False, "before the start of")):
        buffers = {n: Buffer(t, end) for n, t in tensors.items()}
        arguments = [ctypes.c_void_p(b.pointer) for b in buffers.values()] + rest
        if not crashes(function, arguments, buffers.values()):
            continue
        if crashes(function, arguments):  # without fences too: at its end a buffer is aligned to its elements only
            if end:
                continue
            return "the kernel crashes"
        for name, buffer in buffers.items():
            if crashes(function, arguments, [buffer]):
                verb = "writes" if crashes(function, arguments, [buffer], 1) else "reads"
                return f"the kernel {verb} {side} {name!r}"
        return "the kernel touches memory outside its buffers"
    return None


@functools.cache
def compiled():
    library = os.path.join(temporary(), "kernel.so")
    command = [os.environ.get("CC") or "cc", "-O2", "-fPIC", "-shared", "-std=c11", load(KERNEL, "kernel")]
    subprocess.run([*command, "-o", library, "-lm"], check=True)
    return ctypes.CDLL(library)


def kernel(given):
    """void kernel(inputs..., outputs..., scalars..., dims...); outputs start as NaN, so that unwritten ones show."""
    tensors = {n: v for n, v in given.items() if isinstance(v, torch.Tensor)}
    main = next((t.dtype for t in tensors.values() if t.is_floating_point()), torch.float32)
    made = {n: torch.empty(shape, dtype=dtype or main) for n, (shape, dtype) in OUTPUTS.items()}
    for y in made.values():
        y.fill_(float("nan") if y.is_floating_point() else 77)
    rest = [ctypes.c_double(v) if isinstance(v, float) else ctypes.c_int64(int(v))
            for v in given.values() if not isinstance(v, torch.Tensor)]
    rest += [ctypes.c_int64(size) for size in DIMS]
    typed = f"{ENTRY}_{str(main).removeprefix('torch.')}"
    function = getattr(compiled(), typed if hasattr(compiled(), typed) else ENTRY)
    function.restype = None
    tensors.update(made)
    if bad := outside(function, tensors, rest):
        raise Fault(bad)
    buffers = [Buffer(t, end=False) for t in tensors.values()]
    function(*[ctypes.c_void_p(b.pointer) for b in buffers], *rest)
    for b in buffers:
        b.source.copy_(b.data)
    return made[next(iter(made))] if len(made) == 1 else tuple(made.values())
'''
