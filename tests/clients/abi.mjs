// The C ABI as a JavaScript client sees it: signatures in families that are bound all or nothing, the rules on
// versions, and the config struct written byte by byte at its offsets. Shared by the Node.js and the Bun client.

// Result, then arguments. `ptr` is memory of ours (a typed array or null), `handle` a number the library gave us,
// `address` memory of the library's.
const FAMILIES = {
  core: {
    abi_version: 'address',
    create: 'handle ptr ptr',
    destroy: 'void handle',
    free_string: 'void address',
    free_tokens: 'void address',
    mmap_acquire: 'i32 handle ptr ptr',
    mmap_evict: 'i32 handle ptr ptr',
  },
  stream: {
    llm_stream_supported: 'i32',
    llm_stream_open: 'handle handle ptr ptr',
    llm_stream_prefill: 'i32 handle ptr usize ptr',
    llm_stream_next: 'i32 handle ptr usize ptr ptr usize ptr ptr ptr',
    llm_stream_cancel: 'i32 handle',
    llm_stream_save_slot: 'i32 handle ptr ptr',
    llm_stream_restore_slot: 'i32 handle ptr ptr',
    llm_stream_close: 'void handle',
  },
  reset: {
    llm_stream_reset: 'i32 handle',
    llm_stream_reset_keep: 'i32 handle i32',
  },
  speculative: { llm_mtp_supported: 'i32' },
  kvQuant: { llm_kv_quant_supported: 'i32' },
  tokenize: {
    tokenize_supported: 'i32',
    tokenize: 'i32 handle ptr usize i32 i32 ptr ptr ptr',
    detokenize: 'i32 handle ptr usize i32 i32 ptr usize ptr',
  },
  embed: { embed_supported: 'i32', embed: 'i32 handle ptr usize i32 ptr usize ptr ptr' },
  endOfTurn: { llm_eot_supported: 'i32', llm_eot_score: 'i32 handle ptr usize i32 ptr ptr ptr ptr' },
  verifier: { set_verifier_callback: 'i32 handle address address ptr' },
  tts: {
    tts_synthesize: 'i32 handle ptr usize ptr ptr usize ptr',
    tts_stream_supported: 'i32',
    tts_synthesize_stream: 'i32 handle ptr usize ptr address address ptr',
    cancel_tts: 'i32 handle ptr',
    encode_reference: 'i32 handle ptr usize i32 ptr ptr ptr ptr',
  },
  asr: {
    asr_transcribe: 'i32 handle ptr usize i32 ptr usize ptr',
    asr_timestamps_supported: 'i32',
    asr_transcribe_timed: 'i32 handle ptr usize i32 ptr usize ptr ptr ptr ptr',
    asr_stream_supported: 'i32',
    asr_stream_open: 'handle handle i32 ptr',
    asr_stream_feed: 'i32 handle ptr usize ptr',
    asr_stream_partial: 'i32 handle ptr usize ptr ptr ptr',
    asr_stream_finish: 'i32 handle ptr usize ptr ptr ptr',
    asr_stream_close: 'void handle',
  },
  vad: {
    vad_supported: 'i32',
    vad_open: 'handle handle i32 ptr',
    vad_process: 'i32 handle ptr usize ptr ptr',
    vad_reset: 'i32 handle ptr',
    vad_close: 'void handle',
  },
  wakeword: {
    wakeword_supported: 'i32',
    wakeword_open: 'handle handle i32 ptr ptr',
    wakeword_score: 'i32 handle ptr usize ptr ptr',
    wakeword_reset: 'i32 handle ptr',
    wakeword_close: 'void handle',
  },
  speaker: {
    speaker_supported: 'i32',
    speaker_open: 'handle handle ptr ptr',
    speaker_embed: 'i32 handle ptr usize ptr ptr',
    speaker_free: 'void address',
    speaker_close: 'void handle',
  },
  diariz: {
    diariz_supported: 'i32',
    diariz_open: 'handle handle ptr ptr',
    diariz_segment: 'i32 handle ptr usize ptr ptr ptr',
    diariz_close: 'void handle',
  },
  kokoro: {
    kokoro_supported: 'i32',
    kokoro_load: 'i32 handle ptr ptr i32 ptr',
    kokoro_synthesize: 'i32 handle ptr usize f32 ptr usize ptr',
    kokoro_sample_rate: 'i32 handle',
  },
  vision: { vision_supported: 'i32', describe_image: 'i32 handle ptr usize ptr ptr ptr usize ptr' },
};

const FAMILIES_SINCE = {
  13: {
    visionStream: {
      vision_stream_supported: 'i32',
      describe_image_stream_open: 'handle handle ptr usize ptr ptr ptr',
    },
  },
  14: {
    phonemes: {
      kokoro_g2p_kind: 'i32 handle',
      kokoro_synthesize_ipa: 'i32 handle ptr usize f32 ptr usize ptr',
    },
  },
};

export const CANCELLED = -7;

// A family whose every symbol binds, as an object of functions; null where one is missing.
function bindFamily(library, symbols) {
  const functions = {};
  for (const [name, signature] of Object.entries(symbols)) {
    const [result, ...parameters] = signature.split(' ');
    functions[name] = library.bind('eliza_inference_' + name, result, parameters);
    if (!functions[name]) return null;
  }
  return functions;
}

// Whether a client written for ABI `ours` takes the library: null, or the reason why not. The config has no size
// field, so this handshake is all that keeps library and client from reading past each other's struct.
function refusal(ours, version, newerFamilies) {
  if (ours === 12) return version === '12' ? null : `ABI ${version}, and this client speaks 12`;
  if (version === '15' || version === '14') return null;
  if (version !== '12') return `ABI ${version}, and this client speaks 12 to 15`;
  const newer = Object.keys(newerFamilies).filter((name) => newerFamilies[name]);
  return newer.length ? `says ABI 12 and exports ${newer}` : null;
}

// Binds a library. Returns {version, refused, families}.
export function loadAbi(library, ours) {
  const families = {};
  for (const [name, symbols] of Object.entries(FAMILIES)) families[name] = bindFamily(library, symbols);
  const newer = {};
  for (const added of Object.values(FAMILIES_SINCE)) {
    for (const [name, symbols] of Object.entries(added)) newer[name] = bindFamily(library, symbols);
  }
  if (!families.core) return { version: null, refused: 'not libelizainference', families };
  const version = library.readString(families.core.abi_version());
  return { version, refused: refusal(ours, version, newer), families: { ...families, ...newer } };
}

export const cString = (text) => new TextEncoder().encode(text + '\0');

// eliza_llm_stream_config_t of ABI `ours`: 88 bytes, or 80. `strings` keeps what the struct points to alive.
export function marshalConfig(library, ours, options, strings) {
  const bytes = new Uint8Array(ours >= 15 ? 88 : 80);
  const view = new DataView(bytes.buffer);
  const text = (offset, value) => {
    if (value == null) return;
    strings.push(cString(value));
    view.setBigUint64(offset, library.addressOf(strings.at(-1)), true);
  };
  view.setInt32(0, options.maxTokens ?? 0, true);
  view.setFloat32(4, options.temperature ?? 0, true);
  view.setFloat32(8, options.topP ?? 1, true);
  view.setInt32(12, options.topK ?? 0, true);
  view.setFloat32(16, options.repeatPenalty ?? 1, true);
  view.setInt32(20, options.slotId ?? -1, true);
  text(24, options.promptCacheKey);
  view.setInt32(32, options.draftMin ?? 0, true);
  view.setInt32(36, options.draftMax ?? 0, true);
  text(40, options.drafterPath);
  text(48, options.grammar);
  view.setInt32(56, options.disableThinking ? 1 : 0, true);
  view.setInt32(60, options.gpuLayers ?? 0, true);
  text(64, options.cacheTypeK);
  text(72, options.cacheTypeV);
  if (ours >= 15) view.setInt32(80, options.contextSize ?? 0, true);
  return bytes;
}
