"""W3C Trace Context: the trace that a request is part of, from its `traceparent` to `traceresponse` and the log."""

import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass

_PARENT = re.compile(rb"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_LONGEST = 256  # bytes of a header of a later version


@dataclass(frozen=True)
class Trace:
    """One request as a part of a trace: ids in hexadecimal."""

    trace_id: str
    parent_id: str  # whoever asked
    span_id: str  # this request
    flags: str

    @property
    def response(self) -> tuple[bytes, bytes]:
        """The header that tells whoever asked under which id the request was logged."""
        return b"traceresponse", f"00-{self.trace_id}-{self.span_id}-{self.flags}".encode()

    @property
    def logged(self) -> dict[str, str]:
        """What the log says of it."""
        return {"trace_id": self.trace_id, "span_id": self.span_id, "parent_id": self.parent_id}


def read_trace(headers: Iterable[tuple[bytes, bytes]]) -> Trace | None:
    """The trace that a request's headers name; None without one, or where it is malformed."""
    given = [value for name, value in headers if name == b"traceparent"]
    if len(given) != 1 or len(given[0]) > _LONGEST:
        return None
    result = _PARENT.fullmatch(given[0].strip())
    if result is None:
        return None
    version, trace, parent, flags, more = result.groups()
    if version == b"ff" or (version == b"00" and more) or not int(trace, 16) or not int(parent, 16):
        return None
    return Trace(trace.decode(), parent.decode(), secrets.token_hex(8), flags.decode())
