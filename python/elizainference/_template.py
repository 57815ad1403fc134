"""Chat templates: Jinja programs that come with model files.

They run in Jinja's sandbox, for whoever made the file is not to be trusted, and find there what transformers'
`apply_chat_template` (chat_template_utils.py) gives them.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Sequence
from typing import Any

import jinja2
import jinja2.ext
import jinja2.sandbox

from elizainference._errors import InvalidArgument


class Template:
    """A compiled template.

    Raises:
      InvalidArgument: `source` is no Jinja template.
    """

    def __init__(self, source: str) -> None:
        try:
            self._template = _environment().from_string(source)
        except Exception as error:  # of Python's, too: a number of too many digits, what is nested too deeply
            raise InvalidArgument(f"the model's chat template cannot be read: {error}; use raw=True") from error

    def render(self, messages: Sequence[Any], bos_token: str, eos_token: str, disable_thinking: bool) -> str:
        """The text of `messages`, up to where the assistant's answer begins.

        Raises:
          InvalidArgument: the template refuses the messages, or fails.
        """
        # `tools` and `documents` are there, and None. enable_thinking is left out unless it says something, for
        # templates ask whether it is defined.
        thinking = {"enable_thinking": False} if disable_thinking else {}
        try:
            return self._template.render(
                messages=messages,
                tools=None,
                documents=None,
                add_generation_prompt=True,
                bos_token=bos_token,
                eos_token=eos_token,
                **thinking,
            )
        except Exception as error:  # a program can raise anything
            raise InvalidArgument(f"the model's chat template does not accept these messages: {error}") from error


class _Generation(jinja2.ext.Extension):
    """`{% generation %}` marks the assistant's words for training; here it is only its content."""

    tags = {"generation"}

    def parse(self, parser: jinja2.parser.Parser) -> list[jinja2.nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def _environment() -> jinja2.Environment:
    def raise_exception(message: str) -> None:
        raise jinja2.TemplateError(message)

    def strftime_now(format: str) -> str:
        return datetime.datetime.now().strftime(format)

    # Jinja's own tojson escapes for HTML.
    def tojson(
        value: Any,
        ensure_ascii: bool = False,
        indent: int | None = None,
        separators: tuple[str, str] | None = None,
        sort_keys: bool = False,
    ) -> str:
        return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[jinja2.ext.loopcontrols, _Generation]
    )
    environment.filters["tojson"] = tojson
    environment.globals["raise_exception"] = raise_exception
    environment.globals["strftime_now"] = strftime_now
    return environment
