"""The programs that meshplan.jax_shardings records: what each must define, and what is said of one
that does not."""

import os
import runpy

DEFINES = "functions() -> [(name, jitted function, arguments), ...]"


class BadProgram(ValueError):
    """A program that is not what is recorded here; the message says why."""


def functions_of(path):
    """What functions() of the program at `path` gives. What the program itself raises passes."""
    if not os.path.isfile(path):
        raise BadProgram(f"there is no file {path}: name a Python file that defines {DEFINES}")
    functions = runpy.run_path(path).get("functions")
    if not callable(functions):
        raise BadProgram(f"{path} defines no functions(): define {DEFINES}")
    found = functions()
    if hasattr(found, "__iter__"):
        found = list(found)  # a generator runs here, so that what it raises passes, too
    try:
        found = [(name, jitted, tuple(arguments)) for name, jitted, arguments in found]
    except (TypeError, ValueError) as error:
        raise BadProgram(f"{path}: what functions() gives is not as {DEFINES}: {error}") from None
    for name, jitted, _ in found:
        if not isinstance(name, str) or not hasattr(jitted, "lower"):
            what = f"types {type(name).__name__} and {type(jitted).__name__}"
            raise BadProgram(
                f"{path}: {what} are not those of a name and a function of jax.jit: {DEFINES}"
            )
    if not found:
        raise BadProgram(f"{path}: functions() gives nothing to record: {DEFINES}")
    return found
