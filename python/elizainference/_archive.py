"""The file of a saved chat: a zip archive of the conversation, as JSON, and of its KV cache, as they are.

Whoever opens one may have it from a stranger, and zip archives can make much of little. So none is read that says to
hold more than it has bytes, and of what comes into memory there is a bound.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping
from typing import Any

from elizainference._arguments import token_ids
from elizainference._errors import InvalidArgument

_CONVERSATION = "chat.json"
_CACHE = "kv-cache"

_MOST_CONVERSATION = 32 << 20
"""Bytes of a conversation: beyond what any model reads."""

_MOST_READ = 1 << 20
"""Bytes read at once. The list of what an archive holds is read so, and ours takes some hundred."""


def write(file: io.BufferedWriter, messages: list[Mapping[str, Any]], tokens: list[int], cache: str) -> None:
    """Writes an archive of the messages, the tokens in the KV cache and the KV cache's own file.

    Raises:
      InvalidArgument: the messages are too long to be read again.
    """
    conversation = json.dumps({"messages": messages, "tokens": tokens}, default=dict)
    if len(conversation) > _MOST_CONVERSATION:
        raise InvalidArgument(
            f"the conversation has {len(conversation)} bytes as JSON, and at most {_MOST_CONVERSATION} can be saved; "
            "remove some of the messages"
        )
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(_CONVERSATION, conversation)
        archive.write(cache, _CACHE)


def read(path: str, folder: str) -> tuple[list[Mapping[str, Any]], list[int], str]:
    """The messages, the tokens, and the path of the KV cache's file, which it puts into `folder`.

    Raises:
      InvalidArgument: the file is no such archive, or is damaged.
      OSError: it cannot be read.
    """
    try:
        with _BoundedFile(io.FileIO(path)) as file, zipfile.ZipFile(file) as archive:
            conversation = _member(archive, _CONVERSATION)
            if conversation.file_size > _MOST_CONVERSATION:
                raise ValueError(f"its {_CONVERSATION} has {conversation.file_size} bytes")
            with archive.open(conversation) as part:
                saved = json.loads(b"".join(iter(lambda: part.read(_MOST_READ), b"")))
            messages, tokens = list(saved["messages"]), token_ids(saved["tokens"])
            if not all(isinstance(message, Mapping) and isinstance(message.get("role"), str) for message in messages):
                raise ValueError("its messages are none")
            return messages, tokens, archive.extract(_member(archive, _CACHE), folder)
    # RuntimeError: of what is nested too deeply, needs a password, or a later version of zip.
    except (zipfile.BadZipFile, EOFError, KeyError, TypeError, ValueError, RuntimeError) as error:
        raise InvalidArgument(f"{path!r} is no saved chat, or is damaged: {error}") from None


class _BoundedFile(io.BufferedReader):
    def read(self, size: int | None = -1, /) -> bytes:
        if size is not None and size > _MOST_READ:
            raise zipfile.BadZipFile(f"it says to hold {size} bytes where {_MOST_READ} are too many")
        return super().read(size)


def _member(archive: zipfile.ZipFile, name: str) -> zipfile.ZipInfo:
    member = archive.getinfo(name)
    if member.compress_type != zipfile.ZIP_STORED or member.compress_size != member.file_size:
        raise ValueError(f"its {name} is compressed")
    return member
