"""AsyncChat says what Chat says, and keeps its KV cache between turns as that does."""

from __future__ import annotations

import asyncio
import os

import elizainference as eliza
import pytest

from tests.support.runfile import runfile

QUESTIONS = ("Name the capital of France.", "And of Italy?")


@pytest.fixture(scope="module")
def engine():
    with eliza.Engine(runfile(os.environ["DEMO_MANIFEST"]).parent, max_tokens=8, context_size=512) as engine:
        yield engine


def test_turns(engine, tmp_path):
    with engine.chat() as chat:
        expected = [chat.generate(question).text for question in QUESTIONS]

    async def main():
        async with engine.achat() as chat:
            first = await chat.generate(QUESTIONS[0])
            await chat.save(tmp_path / "chat")
            texts = [chunk.text async for chunk in chat.stream(QUESTIONS[1])]
            assert len(chat.messages) == 4
        async with engine.achat() as again:
            await again.restore(tmp_path / "chat")
            second = await again.generate(QUESTIONS[1])
        return first, "".join(texts), second

    first, text, second = asyncio.run(main())
    assert [first.text, text] == expected
    assert second.text == expected[1] and second.stats.reused_tokens > 20


def test_an_answer_that_is_left_adds_nothing(engine):
    async def main():
        async with engine.achat([{"role": "system", "content": "Be brief."}]) as chat:
            async with chat.stream(QUESTIONS[0]) as stream:
                await anext(stream)
            assert len(chat.messages) == 1
            # The chat goes on.
            assert (await chat.generate(QUESTIONS[0])).text
            assert len(chat.messages) == 3

    asyncio.run(main())
