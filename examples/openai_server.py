"""OpenAI-compatible HTTP on top of libelizainference, as an application would put it there.

    pip install elizainference-VERSION.whl fastapi uvicorn   # the wheel of ./bazelw build //python:wheel
    python openai_server.py BUNDLE --port 8000

The library itself has no server: this is all it takes. A request is a stream of its own; a client that hangs up cancels
it.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import uuid
from collections.abc import AsyncIterator
from typing import Any

import elizainference as eliza
import uvicorn
from fastapi import FastAPI
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic import BaseModel


class ChatRequest(BaseModel):
    """What is understood of a request; other fields are ignored."""

    messages: list[dict[str, Any]]
    model: str = ""
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    seed: int | None = None
    stop: str | list[str] | None = None
    response_format: dict[str, Any] | None = None
    stream: bool = False

    def options(self) -> dict[str, Any]:
        """The options of `Engine.astream`."""
        options = self.model_dump(include={"temperature", "top_p", "seed", "stop"}, exclude_none=True)
        options["max_tokens"] = self.max_completion_tokens or self.max_tokens or 0
        form = self.response_format or {}
        if form.get("type") == "json_schema":
            try:
                options["json_schema"] = form["json_schema"]["schema"]
            except (KeyError, TypeError):
                raise eliza.InvalidArgument("response_format has no json_schema with a schema in it") from None
        elif form.get("type") == "json_object":
            options["json_schema"] = {"type": "object"}
        return options


def make_app(engine: eliza.Engine, name: str) -> FastAPI:
    """The server of an engine; `name` is what it calls the model."""
    app = FastAPI(title="libelizainference")

    @app.get("/v1/models")
    def models() -> dict[str, Any]:
        return {"object": "list", "data": [{"id": name, "object": "model", "created": 0, "owned_by": "local"}]}

    @app.post("/v1/chat/completions")
    async def complete(request: ChatRequest) -> Any:
        head = {"id": f"chatcmpl-{uuid.uuid4().hex}", "created": int(time.time()), "model": name}
        stream = engine.astream(request.messages, **request.options())
        if request.stream:
            # Opened before anything is sent, so that what is wrong with the request is a status.
            return StreamingResponse(events(await stream.__aenter__(), head), media_type="text/event-stream")
        answer = await stream.collect()
        message = {"role": "assistant", "content": answer.text}
        choice = {"index": 0, "message": message, "finish_reason": reason(answer.stats)}
        return {**head, "object": "chat.completion", "choices": [choice], "usage": usage(answer.stats)}

    @app.exception_handler(eliza.ElizaError)
    def failed(_: Any, error: eliza.ElizaError) -> JSONResponse:
        wrong = isinstance(error, eliza.InvalidArgument)
        kind = "invalid_request_error" if wrong else "server_error"
        body = {"error": {"message": str(error), "type": kind, "code": error.status}}
        return JSONResponse(body, status_code=400 if wrong else 500)

    return app


async def events(stream: eliza.AsyncStream, head: dict[str, Any]) -> AsyncIterator[str]:
    """The answer as server-sent events. Leaving this, as when the client hangs up, ends the generation."""

    def event(delta: dict[str, Any], finish: str | None = None, **more: Any) -> str:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        body = {**head, "object": "chat.completion.chunk", "choices": [choice], **more}
        return f"data: {json.dumps(body)}\n\n"

    async with stream:
        yield event({"role": "assistant", "content": ""})
        async for chunk in stream:
            if chunk.text:
                yield event({"content": chunk.text})
        yield event({}, reason(stream.stats), usage=usage(stream.stats))
        yield "data: [DONE]\n\n"


def reason(stats: eliza.Stats) -> str:
    """OpenAI's word for why an answer ended."""
    return "length" if stats.stop_reason in ("max_tokens", "context_full") else "stop"


def usage(stats: eliza.Stats) -> dict[str, int]:
    """The figures that clients show."""
    prompt, written = stats.prompt_tokens, stats.generated_tokens
    return {"prompt_tokens": prompt, "completion_tokens": written, "total_tokens": prompt + written}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bundle")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    arguments = parser.parse_args()
    try:
        with eliza.Engine(arguments.bundle) as engine:
            app = make_app(engine, engine.metadata("general.name") or "local")
            uvicorn.run(app, host=arguments.host, port=arguments.port)
    except eliza.ElizaError as error:
        sys.exit(str(error))
