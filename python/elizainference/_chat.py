"""Messages to tokens, through the model's own chat template.

The text that the template makes is tokenized with special tokens, for that is how it marks turns. What users say may
not have that power: a `<|im_end|>` that somebody typed is ten characters and not the end of a turn.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from elizainference import _native
from elizainference._arguments import shown, utf8
from elizainference._errors import InvalidArgument

Message: TypeAlias = Mapping[str, Any]
"""A message of a chat, such as `{"role": "user", "content": "Hello"}`."""


class ChatTemplate:
    """A chat template and the tokenizer it was written for.

    Args:
      source: the template.
      context: the context of the model.

    Raises:
      InvalidArgument: the source is no Jinja template.
    """

    def __init__(self, source: str, context: _native.Context) -> None:
        # Jinja takes a while to import, and only chats need it.
        from elizainference import _template

        self._template = _template.Template(source)
        self._context = context
        self._bos = token_id(context, "bos")
        self._bos_token = _token_text(context, self._bos)
        self._eos_token = _token_text(context, token_id(context, "eos"))

    def render(self, messages: Sequence[Message], disable_thinking: bool = False) -> str:
        """The text of `messages`, up to where the assistant's answer begins."""
        return self._template.render(messages, self._bos_token, self._eos_token, disable_thinking)

    def tokens(self, messages: Sequence[Message], disable_thinking: bool = False) -> list[int]:
        """The token ids of `messages`; special tokens come from the template only.

        Raises:
          InvalidArgument: `messages` are not a list of {"role": …, "content": …}, or the template refuses them.
        """
        cut = f"\ufdd0{secrets.token_hex(8)}\ufdd0"
        safe = [self._checked(message, at, cut) for at, message in enumerate(messages)]
        if not safe:
            raise InvalidArgument("the list of messages is empty; the template needs at least one")
        tokens: list[int] = []
        for piece in self.render(safe, disable_thinking).split(cut):
            tokens += self._context.tokenize(utf8(piece, "the chat"), False, True)
        # Templates differ in whether they write the token that begins a text; a model that wants one wants exactly one.
        begin = self._context.tokenize(b"", True, False)[:1]
        return begin + tokens if begin == [self._bos] and tokens[:1] != begin else tokens

    def _checked(self, message: Message, at: int, cut: str) -> dict[str, Any]:
        where = f"message {at}"
        if not isinstance(message, Mapping) or not isinstance(message.get("role"), str):
            raise InvalidArgument(
                f'{where} is {shown(message)}; it must be a dict such as {{"role": "user", "content": "…"}}'
            )
        if message.get("content") is None and not message.get("tool_calls"):
            raise InvalidArgument(f"{where} is {shown(message)}; it has no content")
        if self._neutralised(message["role"], cut) != message["role"]:
            raise InvalidArgument(f"the role of {where} is {shown(message['role'])}, which holds a special token")
        joined = {**message, "content": _text_of(message.get("content"), where)}
        try:
            safe: dict[str, Any] = _map_strings(joined, lambda string: self._neutralised(string, cut), where)
        except RecursionError:
            raise InvalidArgument(f"{where} is nested too deeply, or holds itself") from None
        return safe

    def _neutralised(self, text: str, cut: str) -> str:
        """`text` with `cut` inside each special token, so that tokenizing what lies between the cuts finds none.

        Text without special tokens, which is nearly all there is, stays as it is. So the template sees what was said
        and may trim or split it, and the whole is tokenized in one piece, as the model learned it.
        """
        pieces = [text]
        for token in self._special_tokens(text):
            apart = token[:1] + cut + token[1:]
            pieces = [part for piece in pieces for part in piece.replace(token, apart).split(cut)]
        if len(pieces) == 1:
            return text
        # Again, for special tokens may overlap.
        return cut.join(self._neutralised(piece, cut) for piece in pieces)

    def _special_tokens(self, text: str) -> list[str]:
        """The texts of special tokens that tokenizing `text` with special tokens would find."""
        data = utf8(text, "the chat")
        tokens = self._context.tokenize(data, False, True)
        if tokens == self._context.tokenize(data, False, False):
            return []
        # A special token is one that reads as nothing unless special tokens are asked for.
        hidden = [token for token in dict.fromkeys(tokens) if not self._context.detokenize([token], False, False)]
        texts = [self._context.detokenize([token], False, True) for token in hidden]
        found = [string for string in texts if len(string) > 1 and string in text]
        if not found:
            raise InvalidArgument(f"a special token in {text[:80]!r} cannot be told from text; leave it out")
        return found


def _text_of(content: Any, where: str) -> str | None:
    """The content of a message, its parts joined where it has parts: a template that joins them itself would join two
    halves of a special token too."""
    if content is None or isinstance(content, str):
        return content
    if not isinstance(content, Sequence) or isinstance(content, (bytes, bytearray)):
        raise InvalidArgument(
            f"the content of {where} is {shown(content)}; it must be a string, or a list of text parts"
        )
    for part in content:
        if not isinstance(part, Mapping) or part.get("type") != "text" or not isinstance(part.get("text"), str):
            raise InvalidArgument(
                f'{where} holds the part {shown(part)}; this library takes text: {{"type": "text", "text": "…"}}'
            )
    return "".join(part["text"] for part in content)


def _map_strings(value: Any, function: Callable[[str], str], where: str) -> Any:
    """A copy of a JSON-like value with `function` applied to its strings, keys of dicts included."""
    if isinstance(value, str):
        return function(value)
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, Mapping):
        return {_map_strings(k, function, where): _map_strings(v, function, where) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_map_strings(item, function, where) for item in value]
    raise InvalidArgument(f"{where} holds {shown(value)}; only what JSON can hold is allowed in it")


def chat_template(context: _native.Context) -> ChatTemplate | None:
    """The model's chat template; None where it has none, as base models have."""
    source = metadata(context, "tokenizer.chat_template")
    return ChatTemplate(source, context) if source else None


def metadata(context: _native.Context, key: str) -> str | None:
    """A value of the model's metadata as text; None for a key it has not."""
    try:
        return context.model_meta(key)
    except InvalidArgument:
        return None


def token_id(context: _native.Context, name: str) -> int | None:
    """The model's token of a name such as "bos"; None where it has none."""
    value = metadata(context, f"tokenizer.ggml.{name}_token_id")
    return int(value) if value and value.isdecimal() else None


def _token_text(context: _native.Context, token: int | None) -> str:
    return "" if token is None else context.detokenize([token], False, True)
