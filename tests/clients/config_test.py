"""The library reads the config of its ABI, 88 bytes or 80, and not one byte more."""

from tests.support import abi, models
from tests.support.guarded import guarded
from tests.support.isolated import isolated

CYCLE = "tiny_llama_cycle"


@isolated
def test_reads_its_config_and_nothing_behind_it():
    library = abi.load()
    config_type = {b"12": abi.Config80, b"15": abi.Config}[library.abi_version()]
    config = config_type(max_tokens=12, top_p=1.0, repeat_penalty=1.0, slot_id=-1)
    with abi.Context(models.bundle(CYCLE)) as context:
        handle = library.call("llm_stream_open", context.handle, guarded(config))
        with abi.Stream(library, handle) as stream:
            stream.prefill(context.tokenize("abc"))
            assert stream.generate() == models.alphabet("abc", 12)
