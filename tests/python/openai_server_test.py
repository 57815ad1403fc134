"""examples/openai_server.py, over HTTP, with the client that OpenAI publishes."""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Iterator

import elizainference as eliza
import openai
import pydantic
import pytest
import uvicorn

from examples.openai_server import make_app
from tests.support.runfile import runfile
from tests.support.waiting import eventually

MESSAGES = [
    {"role": "system", "content": "You are a helpful assistant."},
    {"role": "user", "content": "What is the capital of France?"},
]


@pytest.fixture(scope="module")
def engine() -> Iterator[eliza.Engine]:
    with eliza.Engine(runfile(os.environ["DEMO_MANIFEST"]).parent, context_size=512) as engine:
        yield engine


@pytest.fixture(scope="module")
def client(engine) -> Iterator[openai.OpenAI]:
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(make_app(engine, "smollm2"), log_level="warning"))
    thread = threading.Thread(target=server.run, args=([listener],))
    thread.start()
    port = listener.getsockname()[1]
    with openai.OpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="none", max_retries=0) as client:
        yield client
    server.should_exit = True
    thread.join()
    listener.close()


def test_models(client):
    assert [model.id for model in client.models.list()] == ["smollm2"]


def test_an_answer(client, engine):
    answer = client.chat.completions.create(model="smollm2", messages=MESSAGES)
    (choice,) = answer.choices
    assert choice.message.content == engine.generate(MESSAGES).text and "Paris" in choice.message.content
    assert choice.finish_reason == "stop"
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens > 20


def test_a_streamed_answer(client, engine):
    chunks = list(client.chat.completions.create(model="smollm2", messages=MESSAGES, stream=True, max_tokens=4))
    text = [chunk.choices[0].delta.content or "" for chunk in chunks]
    assert "".join(text) == engine.generate(MESSAGES, max_tokens=4).text
    assert sum(bool(piece) for piece in text) > 1
    assert [chunk.choices[0].finish_reason for chunk in chunks][-2:] == [None, "length"]
    assert chunks[-1].usage.completion_tokens == 4


def test_options(client):
    def text(**options) -> str:
        return client.chat.completions.create(model="x", messages=MESSAGES, **options).choices[0].message.content

    assert "Paris" not in text(stop=["Paris"])
    assert text(temperature=1.5, seed=1, max_tokens=8) == text(temperature=1.5, seed=1, max_tokens=8)


def test_a_pydantic_model(client, engine):
    class Capital(pydantic.BaseModel):
        city: str
        in_europe: bool

    form = {"type": "json_schema", "json_schema": {"name": "capital", "schema": Capital.model_json_schema()}}
    answer = client.chat.completions.create(model="x", messages=MESSAGES, response_format=form, max_tokens=100)
    Capital.model_validate_json(answer.choices[0].message.content)
    # The same without HTTP.
    direct = engine.generate(MESSAGES, json_schema=Capital, max_tokens=100)
    assert json.loads(direct.text) == json.loads(answer.choices[0].message.content)


def test_what_is_wrong_is_a_status(client):
    for stream in (False, True):
        with pytest.raises(openai.BadRequestError, match="temperature is -1"):
            client.chat.completions.create(model="x", messages=MESSAGES, temperature=-1.0, stream=stream)
    for form in ({"type": "json_schema"}, {"type": "json_schema", "json_schema": {"name": "x"}}):
        with pytest.raises(openai.BadRequestError, match="response_format"):
            client.chat.completions.create(model="x", messages=MESSAGES, response_format=form)
    with pytest.raises(openai.BadRequestError, match="empty"):
        client.chat.completions.create(model="x", messages=[])


def test_a_client_that_hangs_up(client, engine, monkeypatch):
    streams = []

    def open_stream(*arguments, **options) -> eliza.AsyncStream:
        endless = {"grammar": "root ::= [a-z] root", "context_size": 4096}
        streams.append(type(engine).astream(engine, *arguments, **options, **endless))
        return streams[-1]

    monkeypatch.setattr(engine, "astream", open_stream)
    with client.chat.completions.create(model="x", messages=MESSAGES, stream=True) as answer:
        next(iter(answer))
    (stream,) = streams
    assert eventually(lambda: stream.stats.stop_reason), "the generation goes on"
    assert stream.stats.stop_reason == "cancelled"
    assert eventually(lambda: not any(thread.name.startswith("eliza-async") for thread in threading.enumerate()))
