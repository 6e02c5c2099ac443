"""Tables of a kernel by reference: one pointer, where numba would pass the fields of all arrays to each function.

Numba passes a named tuple by value. One of 40 arrays is some 350 words, which each call that isn't inlined copies: a
hop of a data centre's packet then takes two to three times as long. A reference is the address of the tuple on the
stack of the function that made it; a field of it is loaded from there when it is used, and a field that is a named
tuple is a reference again.
"""

from __future__ import annotations

from typing import Any

from numba import types
from numba.core import cgutils, config
from numba.core.imputils import lower_getattr_generic
from numba.core.typing.templates import AttributeTemplate
from numba.extending import infer_getattr, intrinsic, models, register_model


class Reference(types.Type):
    """Address of a named tuple."""

    def __init__(self, inner: types.BaseNamedTuple) -> None:
        self.inner = inner
        super().__init__(name=f"Reference({inner})")


@register_model(Reference)
class _Model(models.PrimitiveModel):
    def __init__(self, dmm: Any, fe_type: Any) -> None:
        super().__init__(dmm, fe_type, dmm.lookup(fe_type.inner).get_value_type().as_pointer())


@intrinsic
def _by_reference(typing_context: Any, table: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return cgutils.alloca_once_value(builder, arguments[0])

    return Reference(table)(table), code


@infer_getattr
class _Fields(AttributeTemplate):
    key = Reference

    def generic_resolve(self, reference: Any, name: str) -> Any:
        if name not in reference.inner.fields:
            return None
        kind = reference.inner[reference.inner.fields.index(name)]
        return Reference(kind) if isinstance(kind, types.BaseNamedTuple) else kind


@lower_getattr_generic(Reference)
def _field(context: Any, builder: Any, kind: Any, value: Any, name: str) -> Any:
    place = kind.inner.fields.index(name)
    at = cgutils.gep_inbounds(builder, value, 0, place)
    return at if isinstance(kind.inner[place], types.BaseNamedTuple) else builder.load(at)


def _itself(table: Any) -> Any:
    return table


_without: Any = config  # type checkers don't see attributes that are set on loading
by_reference: Any = _itself if _without.DISABLE_JIT else _by_reference
"""Of a named tuple, in compiled code: for as long as the calling function runs. Fields are read as of the tuple."""
