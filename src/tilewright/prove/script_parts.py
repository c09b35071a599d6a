"""The fixed parts of a stand-alone script; ``script.py`` chooses among them.

A line that ends in ``#? flag`` stays only where the script needs that flag (``#? !flag``: only where it doesn't), so
that a script has no line that its case can't reach.
"""

MAIN = """
def main():
    try:
        with Widened():  #? casts
            oracle = call(reference, wide(inputs()))  #? casts
        oracle = call(reference, wide(inputs()))  #? !casts
    except Exception:
        traceback.print_exc()
        print("can't tell: the reference fails on this input")
        return 2
    try:
        plain = call(reference, inputs())  # in the inputs' own dtypes
    except Exception:
        plain = {}
    try:
        faults = check(oracle, plain)
    except Fault as error:  #? native
        faults = [str(error)]  #? native
    except Exception as error:
        traceback.print_exc()
        if DEVICE == "cpu" and any(word in str(error) for word in ("CUDA", "NVIDIA", "active drivers")):
            print("can't tell: the kernel needs a GPU, and there is none")
            return 2
        faults = [f"the kernel raises {type(error).__name__}: {error}"]
    print("\\n".join(faults) or "the kernel is right on this input")
    if DEVICE == "cpu" and not faults:  #? triton
        print("note: run by Triton's interpreter, which hides some faults; only a GPU can tell for sure")  #? triton
    print("STILL FAILS" if faults else "no longer fails")
    return 1 if faults else 0
"""

CHECK_VALUES = """
def check(oracle, plain):
    torch.use_deterministic_algorithms(True, warn_only=True)  #? written
    torch.utils.deterministic.fill_uninitialized_memory = True  # unwritten memory shows as NaN  #? written
    given = {n: v.to(DEVICE) if isinstance(v, torch.Tensor) else v for n, v in inputs().items()}
    try:  #? aligned
        plainly = {n: v.contiguous().clone() if hasattr(v, "contiguous") else v for n, v in given.items()}  #? aligned
        call(kernel, plainly)  # what a kernel specialises on alignment is made now  #? aligned
    except Exception:  #? aligned
        pass  #? aligned
    got = call(kernel, given)
    return [f for n, y in oracle.items() if (f := fault(n, got.get(n), y, plain.get(n)))]
"""

CHECK_REPEATS = '''
def check(oracle, plain):
    """The same call must give the same bits every time."""

    def bits():
        given = {n: v.to(DEVICE) if isinstance(v, torch.Tensor) else v for n, v in inputs().items()}
        return {n: t.contiguous().reshape(-1).view(torch.uint8) for n, t in call(kernel, given).items()}

    first = bits()
    for again in range(1, 50):
        for name, t in bits().items():
            if not torch.equal(t, first[name]):
                return [f"{name}: call {again} gives other bits than call 0 on the same input"]
    return []
'''

CHECK_KEPT = '''
def check(oracle, plain):
    """The inputs must be unchanged, and a second call right as well."""  #? !sharing
    """The outputs must have memory of their own, the inputs be unchanged, and a second call right."""  #? sharing
    faults = []
    given = {n: v.to(DEVICE) if isinstance(v, torch.Tensor) else v for n, v in inputs().items()}  #? sharing
    memory = {v.untyped_storage().data_ptr(): n for n, v in given.items() if isinstance(v, torch.Tensor)}  #? sharing
    for name, t in flatten(kernel(given)).items():  #? sharing
        if t.numel() and t.untyped_storage().data_ptr() in memory:  #? sharing
            owner = memory[t.untyped_storage().data_ptr()]  #? sharing
            faults.append(f"{name} shares memory with the input {owner!r}")  #? sharing
    for which in ("first", "second"):
        given = {n: v.to(DEVICE) if isinstance(v, torch.Tensor) else v for n, v in inputs().items()}
        got = call(kernel, given)
        for name, before in inputs().items():
            if name not in CHANGED_INPUTS and isinstance(before, torch.Tensor) and before.numel():
                after = given[name].cpu().contiguous().reshape(-1).view(torch.uint8)
                if not torch.equal(before.contiguous().reshape(-1).view(torch.uint8), after):
                    faults.append(f"the {which} call changes its input {name!r}")
        faults += [f for n, y in oracle.items() if (f := fault(n, got.get(n), y, plain.get(n)))]
    return faults
'''

CHECK_HELD = '''
def check(oracle, plain):
    """Outputs that the caller still holds must not change in a later call on other values."""
    given = {n: v.to(DEVICE) if isinstance(v, torch.Tensor) else v for n, v in inputs().items()}
    held = flatten(kernel(given))
    before = {n: t.detach().clone() for n, t in held.items()}
    halved = {n: v / 2 if isinstance(v, torch.Tensor) and v.is_floating_point() else v for n, v in given.items()}
    for again in range(1, 10):
        call(kernel, halved if again % 2 else given)
        for name, t in held.items():
            if not torch.equal(t.detach(), before[name]) and not torch.isnan(before[name]).any():
                return [f"{name} of call 0 is overwritten by call {again}"]
    return []
'''

CALL = '''
def call(function, given):
    """Tensors that ``function`` gives, by name."""
    given = {n: v.detach().requires_grad_() if n in WANTED else v for n, v in given.items()}  #? grads
    with torch.set_grad_enabled(bool(WANTED)):  #? grads
        results = flatten(function(given))  #? grads
    pairs = [(results[n], c.to(results[n])) for n, c in cotangents().items() if results[n].requires_grad]  #? grads
    outputs, weights = zip(*pairs)  #? grads
    grads = torch.autograd.grad(outputs, [given[n] for n in WANTED], weights, allow_unused=True)  #? grads
    results.update({f"grad of {n}": g for n, g in zip(WANTED, grads) if g is not None})  #? grads
    with torch.no_grad():  #? !grads
        results = flatten(function(given))  #? !grads
    results.update({n: given[n] for n in CHANGED_INPUTS})  #? changed
    return {n: t.detach().cpu() for n, t in results.items()}


def flatten(value, name="out"):
    if isinstance(value, torch.Tensor):
        return {name: value}
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, (tuple, list)) else ()
    return {k: t for key, v in items for k, t in flatten(v, f"{name}.{key}").items()}


def wide(values):
    """The same in float64."""

    def to64(v):
        if isinstance(v, torch.Tensor) and v.is_complex():  #? complex
            return v.to(torch.complex128)  #? complex
        return v.double() if isinstance(v, torch.Tensor) and v.is_floating_point() else v

    return {n: to64(v) for n, v in values.items()}
'''

WIDENED = '''
class Widened(torch.overrides.TorchFunctionMode):
    """Casts inside the reference (``.float()``, ``.to(torch.float16)``) go to float64 instead."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        narrow = isinstance(result, torch.Tensor) and result.is_floating_point() and result.dtype != torch.float64
        casts = function in (torch.Tensor.float, torch.Tensor.half, torch.Tensor.bfloat16, torch.Tensor.to)
        return args[0].double() if narrow and casts else result
'''

JUDGE = '''
def fault(name, got, expected, plain):
    """What is wrong with an output, or None. ``plain``: what the reference gives in the inputs' own dtypes."""
    if got is None:
        return f"{name}: the kernel gives none"
    plain = expected.to(got.dtype) if plain is None else plain
    if (got.shape, got.dtype) != (plain.shape, plain.dtype):
        return f"{name}: {got.dtype} {tuple(got.shape)}, expected {plain.dtype} {tuple(plain.shape)}"
    if got.is_complex():  #? complex
        parts = (torch.view_as_real(t) for t in (got, expected.to(torch.complex128), plain))  #? complex
        return fault(name, *parts)  #? complex
    if not got.is_floating_point():
        return worst(name, (got != plain).double(), got, plain)
    rounded, dtype = expected.to(got.dtype).double(), got.dtype
    got, plain = got.double(), plain.double()
    special = ~(alike(got, plain) | alike(got, rounded) | alike(got, expected))  # NaN for a number, Inf for NaN, ...
    flipped = (got == 0) & (plain == 0) & (got.signbit() != plain.signbit())  #? zeros
    special = special | flipped  #? zeros
    if bool(special.any()):
        return worst(name, special.double(), got, rounded)
    numbers = torch.isfinite(got) & torch.isfinite(expected)
    error = torch.where(numbers, (got - expected).abs(), 0.0)
    usual = torch.where(numbers, (plain - expected).abs(), 0.0).nan_to_num()
    excess = torch.where(numbers, error / allowed(name, expected, usual, dtype) - 1, 0.0)
    return worst(name, excess.clamp(min=0), got, expected)


def alike(a, b):
    return (torch.isnan(a) == torch.isnan(b)) & (torch.isposinf(a) == torch.isposinf(b)) & (
        torch.isneginf(a) == torch.isneginf(b))


def allowed(name, expected, usual, dtype):
    """Error that rounding explains, per element. ``usual``: the error of the reference in the inputs' own dtypes."""
    info = torch.finfo(dtype)
    size = expected.abs().clamp(info.smallest_normal, info.max)
    if name == OUTPUT and len(INDEX) == expected.dim() and torch.isfinite(expected[INDEX]):  #? budget
        return BUDGET * (size / size[INDEX]).clamp(min=1)  #? budget
    ulp = torch.ldexp(torch.full_like(size, info.eps), torch.frexp(size).exponent - 1)
    return K * usual.max() + FLOOR * ulp + ATOL + RTOL * expected.abs()


def worst(name, badness, got, expected):
    """The known index if it is wrong, else the worst one."""
    if badness.numel() == 0 or float(badness.max()) == 0:
        return None
    at = tuple(int(i) for i in torch.unravel_index(badness.argmax(), badness.shape)) if badness.dim() else ()
    known = name == OUTPUT and len(INDEX) == badness.dim() and all(i < n for i, n in zip(INDEX, badness.shape))
    at = INDEX if known and float(badness[INDEX]) > 0 else at
    place = name + (str(list(at)) if at else "")
    return f"{place}: got {got[at].item():.9g}, expected {expected[at].item():.9g}"
'''

LOADING = '''
def temporary():
    """A folder that goes when the script ends."""
    folder = tempfile.TemporaryDirectory()
    atexit.register(folder.cleanup)
    return folder.name


@functools.cache
def load(path, role):
    """The file at ``path`` as a module; where there is none, the copy at the end of this script."""
    name, copies = os.path.basename(path), COPIES[role]
    if not os.path.exists(path) and name in copies:
        print(f"note: {path} is not here; using the copy in this script")
        folder = temporary()
        for other, (_, text) in copies.items():
            with open(os.path.join(folder, other), "w", newline="") as file:
                file.write(text)
        path = os.path.join(folder, name)
    elif not os.path.exists(path):
        print(f"can't tell: there is no file {path}")
        sys.exit(2)
    elif name in copies and hashlib.sha256(open(path, "rb").read()).hexdigest() != copies[name][0]:
        print(f"note: {path} has changed since the failure was found; using it as it is now")
    if not path.endswith(".py"):
        return path
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    spec = importlib.util.spec_from_file_location(f"{role}_" + name.removesuffix(".py"), path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
'''

STAND_IN = '''
class Record:
    """Stands in for every class that the problem file imports from tilewright.task: keeps what it was given."""

    def __init__(self, *args, **named):
        self.__dict__.update(named)


class StandIn(types.ModuleType):
    __path__ = []

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Record


for name in ("tilewright", "tilewright.task", "tilewright.task.task", "tilewright.task.tensors"):
    sys.modules[name] = StandIn(name)
'''

UNPACK = """
def unpack(text, shape, dtype):
    data = bytearray(zlib.decompress(base64.b64decode(text)))
    return torch.frombuffer(data, dtype=torch.uint8).view(dtype).reshape(shape)
"""

BY_NAME = """
def reference(given):
    function = TARGET
    code = getattr(function, "__code__", None)
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount] if code else ()
    return function(**given) if set(given) <= set(names) else function(*given.values())
"""

MODULE = '''
def build(cls):
    """The module as it was built, with the recorded parameters and buffers."""
    torch.manual_seed(SEED)
    arguments = init()
    module = cls(**arguments) if isinstance(arguments, dict) else cls(*arguments)
    left = {n: t for n, t in state().items() if not n.startswith("init.")}  #? state
    own = dict(module.named_parameters()) | dict(module.named_buffers())  #? state
    with torch.no_grad():  #? state
        for name, target in own.items():  #? state
            alike = (n for n, t in left.items() if t.shape == target.shape and t.dtype == target.dtype)  #? state
            source = name if name in left else next(alike, None)  #? state
            if source is not None:  #? state
                target.copy_(left.pop(source))  #? state
    return module
'''
