r"""A Java exception as bytes: what Flink's command line unpacks when an operation failed.

    SerializedThrowable
      fullStringifiedStackTrace   "java.lang.Exception: <message>\n"
      originalErrorClassName      "java.lang.Exception"
      serializedException         bytes of a java.lang.Exception(<message>), a stream of its own

The command line hangs on a failure whose `serialized-throwable` it cannot read, so we write one:
the constant parts are class descriptors of the JDK and of Flink, the rest are our texts.

Source   Java Object Serialization Specification, section 6: 0x73 object, 0x72 class, 0x74 string
         (uint16 length, modified UTF-8), 0x75 array (int32 count), 0x71 handle, 0x70 null,
         0x78 end of block. Handles count objects, so texts of any length fit in.
"""

from __future__ import annotations

import base64

MAX_MESSAGE_BYTES = 4_000
"""A short Java string holds 64 KiB; a sentence needs less."""

_MAGIC = b"\xac\xed\x00\x05"
_EXCEPTION = b"java.lang.Exception"
_THROWABLE_CLASS = b"r\x00\x13java.lang.Throwable\xd5\xc65'9w\xb8\xcb\x03\x00\x04L\x00\x05cause"
_STACK_FIELDS = (
    b"[\x00\nstackTracet\x00\x1e[Ljava/lang/StackTraceElement;"
    b"L\x00\x14suppressedExceptionst\x00\x10Ljava/util/List;xp"
)
_NO_STACK = (
    b'ur\x00\x1e[Ljava.lang.StackTraceElement;\x02F*<<\xfd"9\x02\x00\x00xp\x00\x00\x00\x00'
    b"sr\x00\x1fjava.util.Collections$EmptyListz\xb8\x17\xb4<\xa7\x9e\xde\x02\x00\x00xpx"
)


def serialized_throwable(message: str) -> str:
    """Base64 of a SerializedThrowable that carries `message`."""
    text = _modified_utf8(message)
    inner = _exception(text)
    outer = _wrapper(_EXCEPTION + b": " + text) + len(inner).to_bytes(4, "big") + inner
    return base64.b64encode(outer).decode("ascii")


def _exception(text: bytes) -> bytes:
    return (
        _MAGIC
        + b"sr\x00\x13java.lang.Exception\xd0\xfd\x1f>\x1a;\x1c\xc4\x02\x00\x00x"
        + _THROWABLE_CLASS
        + b"t\x00\x15Ljava/lang/Throwable;L\x00\rdetailMessaget\x00\x12Ljava/lang/String;"
        + _STACK_FIELDS
        + b"q\x00~\x00\x06"
        + _string(text)
        + _NO_STACK
    )


def _wrapper(described: bytes) -> bytes:
    """Everything up to the count of the inner stream's bytes."""
    return (
        _MAGIC
        + b"sr\x00)org.apache.flink.util.SerializedThrowable"
        + b"e\x16\x9d\xf5\x1f\xa7\x13\xf3\x02\x00\x03"
        + b"L\x00\x19fullStringifiedStackTracet\x00\x12Ljava/lang/String;"
        + b"L\x00\x16originalErrorClassNameq\x00~\x00\x01[\x00\x13serializedExceptiont\x00\x02[B"
        + b"xr\x00\x13java.lang.Exception\xd0\xfd\x1f>\x1a;\x1c\xc4\x02\x00\x00x"
        + _THROWABLE_CLASS
        + b"t\x00\x15Ljava/lang/Throwable;L\x00\rdetailMessageq\x00~\x00\x01"
        + _STACK_FIELDS
        + b"p"
        + _string(described)
        + _NO_STACK
        + _string(described + b"\n")
        + _string(_EXCEPTION)
        + b"ur\x00\x02[B\xac\xf3\x17\xf8\x06\x08T\xe0\x02\x00\x00xp"
    )


def _string(text: bytes) -> bytes:
    return b"t" + len(text).to_bytes(2, "big") + text


def _modified_utf8(message: str) -> bytes:
    """UTF-8 without the two cases where Java's form differs: NUL and characters beyond U+FFFF."""
    plain = "".join(char if 0 < ord(char) <= 0xFFFF else "?" for char in message)
    shortened = plain.encode("utf-8", "replace")[:MAX_MESSAGE_BYTES]
    return shortened.decode("utf-8", "ignore").encode("utf-8")
