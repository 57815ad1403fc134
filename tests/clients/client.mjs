// What the JavaScript clients do with the library, whatever their foreign function interface is.
//
//   LIBRARY BUNDLE PROMPT MAX_TOKENS ABI
//
// prints one JSON object: what was bound, and what the model said.
import { CANCELLED, cString, loadAbi, marshalConfig } from './abi.mjs';

const TOKENS_CAP = 32;
const TEXT_CAP = 1024;

class Client {
  constructor(library, families) {
    this.library = library;
    this.abi = Object.assign({}, ...Object.values(families).filter(Boolean));
    this.error = new BigUint64Array(1);
  }

  // The message of the call that just failed, freed.
  takeError() {
    const [address] = this.error;
    if (address === 0n) return null;
    const message = this.library.readString(address);
    this.abi.free_string(address);
    this.error[0] = 0n;
    return message;
  }

  check(status, what) {
    if (status < 0) throw new Error(`${what}: ${status}: ${this.takeError()}`);
    return status;
  }

  opened(handle, what) {
    if (!handle) throw new Error(`${what}: ${this.takeError()}`);
    return handle;
  }

  create(bundle) {
    return this.opened(this.abi.create(cString(bundle), this.error), 'create');
  }

  tokenize(context, text) {
    const bytes = new TextEncoder().encode(text);
    const tokens = new BigUint64Array(1);
    const count = new BigUint64Array(1);
    this.check(this.abi.tokenize(context, bytes, bytes.length, 1, 0, tokens, count, this.error), 'tokenize');
    const result = this.library.readInt32s(tokens[0], Number(count[0]));
    this.abi.free_tokens(tokens[0]);
    return result;
  }

  open(context, ours, options) {
    const strings = [];
    const config = marshalConfig(this.library, ours, options, strings);
    return this.opened(this.abi.llm_stream_open(context, config, this.error), 'open');
  }

  prefill(stream, tokens) {
    const status = this.abi.llm_stream_prefill(stream, tokens, tokens.length, this.error);
    if (status !== 0) throw new Error(`prefill: ${status}: ${this.takeError()}`);
  }

  // One call of next: {status, tokens, text}.
  next(stream) {
    const tokens = new Int32Array(TOKENS_CAP);
    const count = new BigUint64Array(1);
    const text = new Uint8Array(TEXT_CAP).fill(0x78);
    const counters = [new Int32Array(1), new Int32Array(1)];
    const status = this.abi.llm_stream_next(
      stream, tokens, TOKENS_CAP, count, text, TEXT_CAP, counters[0], counters[1], this.error);
    if (status < 0) return { status, message: this.takeError() };
    const end = text.indexOf(0);
    if (end < 0) throw new Error('text_out has no NUL');
    if (Number(count[0]) > TOKENS_CAP) throw new Error(`${count[0]} tokens for room for ${TOKENS_CAP}`);
    return {
      status,
      tokens: [...tokens.subarray(0, Number(count[0]))],
      // Throws on a part of a character.
      text: new TextDecoder('utf-8', { fatal: true }).decode(text.subarray(0, end)),
    };
  }

  // A whole generation: {text, tokens, chunks}.
  pull(stream) {
    const result = { text: '', tokens: 0, chunks: 0 };
    for (;;) {
      const step = this.next(stream);
      if (step.status < 0) throw new Error(`next: ${step.status}: ${step.message}`);
      result.text += step.text;
      result.tokens += step.tokens.length;
      result.chunks += 1;
      if (step.status === 1) return result;
    }
  }
}

function messageOf(call) {
  try {
    call();
  } catch (error) {
    return error.message;
  }
  return null;
}

// Loads `path` with the functions of an FFI ({open}), runs everything once, returns the report.
function run(ffi, [path, bundle, prompt, maxTokens, ours]) {
  ours = Number(ours);
  const library = ffi.open(path);
  const { version, refused, families } = loadAbi(library, ours);
  const bound = Object.fromEntries(Object.entries(families).map(([name, functions]) => [name, functions !== null]));
  const report = { version, refused, bound };
  if (refused) return report;

  const client = new Client(library, families);
  report.supported = Object.fromEntries(
    Object.keys(client.abi).filter((name) => name.endsWith('_supported')).map((name) => [name, client.abi[name]()]));
  report.missingBundle = messageOf(() => client.create('/no/such/bundle'));

  const context = client.create(bundle);
  const options = { maxTokens: Number(maxTokens), contextSize: 256 };
  report.badConfig = messageOf(() => client.open(context, ours, { ...options, temperature: -1 }));
  report.badDrafter = messageOf(() => client.open(context, ours, { ...options, draftMin: 3, draftMax: 2 }));

  const tokens = client.tokenize(context, prompt);
  report.promptTokens = tokens.length;
  const stream = client.open(context, ours, options);
  client.prefill(stream, tokens);
  report.first = client.pull(stream);

  client.check(client.abi.llm_stream_cancel(stream), 'cancel');
  const cancelled = client.next(stream);
  report.cancelled = { ...cancelled, expected: cancelled.status === CANCELLED };

  client.check(client.abi.llm_stream_reset(stream), 'reset');
  client.prefill(stream, tokens);
  report.afterReset = client.pull(stream);

  report.kept = client.check(client.abi.llm_stream_reset_keep(stream, tokens.length - 1), 'reset_keep');
  client.prefill(stream, tokens.subarray(report.kept));
  report.afterResetKeep = client.pull(stream);

  // Once in the other order than a careful client's, and once too often.
  client.abi.destroy(context);
  client.abi.llm_stream_close(stream);
  client.abi.destroy(context);
  report.afterClose = client.next(stream);
  library.close();
  return report;
}

// Runs the client with the arguments of the command line.
export function main(ffi) {
  console.log(JSON.stringify(run(ffi, process.argv.slice(2))));
}
