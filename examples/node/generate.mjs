// Streams what a model says after a prompt, from Node.js:
//
//   npm install
//   node generate.mjs /path/to/lib/libelizainference.so BUNDLE PROMPT
//
// A call blocks while the model computes, and the event loop with it. In a server use koffi's asynchronous calls, which
// run on a thread of their own (`next.async(…, callback)`), one at a time for each stream.
import { createRequire } from 'node:module';

const koffi = createRequire(import.meta.url)('koffi');
const [path, bundle, prompt] = process.argv.slice(2);
if (prompt === undefined) {
  console.error('usage: node generate.mjs LIBRARY BUNDLE PROMPT');
  process.exit(2);
}

// The header's types: handles are ids, never followed.
koffi.struct('eliza_llm_stream_config_t', {
  max_tokens: 'int32_t', temperature: 'float', top_p: 'float', top_k: 'int32_t', repeat_penalty: 'float',
  slot_id: 'int32_t', prompt_cache_key: 'const char *', draft_min: 'int32_t', draft_max: 'int32_t',
  mtp_drafter_path: 'const char *', gbnf_grammar: 'const char *', disable_thinking: 'int32_t',
  n_gpu_layers: 'int32_t', cache_type_k: 'const char *', cache_type_v: 'const char *', context_size: 'int32_t',
});
const library = koffi.load(path);
const bind = (result, name, parameters) => library.func(`eliza_inference_${name}`, result, parameters);
const error = koffi.out(koffi.pointer('void *'));
const abiVersion = bind('str', 'abi_version', []);
const freeString = bind('void', 'free_string', ['void *']);
const freeTokens = bind('void', 'free_tokens', ['void *']);
const create = bind('uintptr_t', 'create', ['str', error]);
const destroy = bind('void', 'destroy', ['uintptr_t']);
const tokenize = bind('int', 'tokenize', ['uintptr_t', 'str', 'size_t', 'int', 'int',
  koffi.out(koffi.pointer('void *')), koffi.out(koffi.pointer('size_t')), error]);
const open = bind('uintptr_t', 'llm_stream_open', ['uintptr_t', 'eliza_llm_stream_config_t *', error]);
const prefill = bind('int', 'llm_stream_prefill', ['uintptr_t', 'int32_t *', 'size_t', error]);
const next = bind('int', 'llm_stream_next', ['uintptr_t', 'int32_t *', 'size_t', koffi.out(koffi.pointer('size_t')),
  'uint8_t *', 'size_t', 'int32_t *', 'int32_t *', error]);
const close = bind('void', 'llm_stream_close', ['uintptr_t']);

// Calls `call` with a place for the message, and throws that where `failed` says so.
function checked(failed, call) {
  const message = [null];
  const result = call(message);
  if (!failed(result)) return result;
  const text = message[0] ? koffi.decode.string(koffi.address(message[0])) : 'no reason given';
  freeString(message[0]);
  throw new Error(text);
}
const isNegative = (status) => status < 0;
const isNull = (handle) => !handle;

// The struct has no size field: the version is the only handshake.
if (abiVersion() !== '15') throw new Error(`this client is for ABI 15, and the library has ${abiVersion()}`);

const context = checked(isNull, (message) => create(bundle, message));
const [tokens, count] = [[null], [0]];
// The last 1: "<|im_start|>" and the like become special tokens, as a chat template wants it that you filled in. What a
// user typed takes 0, or it could end its turn and forge another.
checked(isNegative, (message) =>
  tokenize(context, prompt, Buffer.byteLength(prompt), 1, 1, tokens, count, message));
const ids = Int32Array.from(koffi.decode(tokens[0], 'int32_t', Number(count[0])));
freeTokens(tokens[0]);

const config = { max_tokens: 64, top_p: 1, repeat_penalty: 1, slot_id: -1 };
const stream = checked(isNull, (message) => open(context, config, message));
checked(isNegative, (message) => prefill(stream, ids, ids.length, message));
const [step, text] = [new Int32Array(32), new Uint8Array(1024)];
for (let status = 0; status === 0;) {
  status = checked(isNegative, (message) =>
    next(stream, step, step.length, [0], text, text.length, null, null, message));
  process.stdout.write(text.subarray(0, text.indexOf(0)));
}
close(stream);
destroy(context);
