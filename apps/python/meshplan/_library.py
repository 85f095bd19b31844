"""libmeshplan.so through ctypes: the functions of lib/api/meshplan.h, and answers as Python has
them.

The library lies in the package; MESHPLAN_LIBRARY in the environment names another one, such as that
of a build. Calls run without Python's lock, so that threads plan side by side.
"""

from __future__ import annotations

import ctypes
import functools
import json
import os
import pathlib
from typing import Any

API_VERSION = 1  # MESHPLAN_API_VERSION of the header that this file was written for

# function -> (result, arguments); texts are (pointer, bytes without a closing zero)
_TEXT = (ctypes.c_char_p, ctypes.c_size_t)
_FUNCTIONS = {
    "meshplan_version": (ctypes.c_char_p, ()),
    "meshplan_code": (ctypes.c_int, (ctypes.c_void_p,)),
    "meshplan_text": (ctypes.c_void_p, (ctypes.c_void_p,)),
    "meshplan_text_bytes": (ctypes.c_size_t, (ctypes.c_void_p,)),
    "meshplan_diagnostics": (ctypes.c_char_p, (ctypes.c_void_p,)),
    "meshplan_free": (None, (ctypes.c_void_p,)),
    "meshplan_plan": (ctypes.c_void_p, (*_TEXT, ctypes.c_char_p)),
    "meshplan_price": (ctypes.c_void_p, (*_TEXT, ctypes.c_char_p)),
    "meshplan_verify": (ctypes.c_void_p, _TEXT),
    "meshplan_transfers": (ctypes.c_void_p, (*_TEXT, ctypes.c_char_p, ctypes.c_int64)),
    "meshplan_bundle_transfers": (ctypes.c_void_p, (*_TEXT, ctypes.c_char_p, ctypes.c_int64)),
    "meshplan_pricer_make": (
        ctypes.c_void_p,
        (*_TEXT, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_void_p),
    ),
    "meshplan_pricer_free": (None, (ctypes.c_void_p,)),
    "meshplan_pricer_ask": (ctypes.c_void_p, (ctypes.c_void_p,) * 3),
}


class Questions(ctypes.Structure):
    """meshplan_questions: row-major arrays, a row a question."""

    _fields_ = [
        ("count", ctypes.c_size_t),
        ("tensor_dims", ctypes.c_size_t),
        ("shapes", ctypes.c_void_p),  # int64, count x tensor_dims
        ("dtypes", ctypes.c_void_p),  # int32, count
        ("src", ctypes.c_void_p),  # int64, count x dims of the mesh
        ("dst", ctypes.c_void_p),
    ]


class MeshplanError(Exception):
    """A call that has no answer. `code` is what the command line exits with: 2 bad input, 3 no plan
    exists, 4 a wrong plan, 5 the environment lacks something, 70 a bug in meshplan; `diagnostics`
    are the problems as `meshplan --diagnostics json` prints them: code, message, place, help."""

    def __init__(self, code: int, diagnostics: list[dict[str, Any]]) -> None:
        self.code, self.diagnostics = code, diagnostics
        super().__init__("\n".join(_line_of(d) for d in diagnostics) or f"exit code {code}")


def _line_of(diagnostic: dict[str, Any]) -> str:
    """`error[E0104]: unknown key "shap" (line 3, column 9, /tensor)`."""
    place = diagnostic.get("place") or {}
    where = [f"{word} {place[word]}" for word in ("line", "column") if place.get(word)]
    where += [place["pointer"]] if place.get("pointer") else []
    text = f"{diagnostic.get('severity', 'error')}[{diagnostic.get('code')}]: "
    text += str(diagnostic.get("message"))
    return f"{text} ({', '.join(where)})" if where else text


def library_path() -> str:
    """The path of the library that `load` takes."""
    named = os.environ.get("MESHPLAN_LIBRARY")
    return named or str(pathlib.Path(__file__).parent / "lib" / "libmeshplan.so")


@functools.cache
def load() -> ctypes.CDLL:
    """The library, loaded once. ImportError where it is missing or has another API."""
    path = library_path()
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        raise ImportError(
            f"meshplan's library could not be loaded: {error}; install the package "
            "(pip install ./apps/python), or name a build's library in MESHPLAN_LIBRARY"
        ) from error
    version = library.meshplan_api_version()
    if version != API_VERSION:
        raise ImportError(f"{path} has API version {version}; this package needs {API_VERSION}")
    for name, (result, arguments) in _FUNCTIONS.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, list(arguments)
    return library


def ask(name: str, text: str, *arguments: Any) -> tuple[str, list[dict[str, Any]]]:
    """Calls a function that takes a text and more, and gives an answer: its text and the warnings.
    MeshplanError where there is none."""
    data = in_utf8(text)
    return call(name, data, len(data), *arguments)


def in_utf8(text: str) -> bytes:
    """The text as the library takes it."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        found = text[error.start]
        raise ValueError(
            f"character {error.start} of the text is half of a surrogate pair, {found!r}, "
            "which UTF-8 does not have"
        ) from None


def call(name: str, *arguments: Any) -> tuple[str, list[dict[str, Any]]]:
    """Calls a function that gives an answer, which is read and freed."""
    library = load()
    answer = getattr(library, name)(*arguments)
    if not answer:
        raise MemoryError(f"{name}: out of memory")
    try:
        found = json.loads(library.meshplan_diagnostics(answer))["diagnostics"]
        code = library.meshplan_code(answer)
        if code != 0:
            raise MeshplanError(code, found)
        size = library.meshplan_text_bytes(answer)
        return ctypes.string_at(library.meshplan_text(answer), size).decode(), found
    finally:
        library.meshplan_free(answer)
