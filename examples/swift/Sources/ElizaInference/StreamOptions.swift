import CElizaInference

/// How a stream generates: the C ABI's config, with the same defaults.
public struct StreamOptions: Sendable {
  /// Tokens for each generation; 0: until the end of the text or a full context.
  public var maxTokens: Int32 = 0
  /// 0: greedy and deterministic.
  public var temperature: Float = 0
  /// Nucleus sampling; 1: off.
  public var topP: Float = 1
  /// 0: off.
  public var topK: Int32 = 0
  /// Over the last 64 tokens; 1: off.
  public var repeatPenalty: Float = 1
  /// Which warm KV cache of `promptCacheKey` to use; -1: none.
  public var slot: Int32 = -1
  public var promptCacheKey: String?
  /// Speculative decoding: the fewest tokens to draft in a step.
  public var draftMin: Int32 = 0
  /// The most tokens to draft in a step; 0: no drafting.
  public var draftMax: Int32 = 0
  /// The drafter model, absolute or relative to the bundle.
  public var drafterPath: String?
  /// A GBNF grammar that every generated token satisfies.
  public var grammar: String?
  /// -1: all; 0: the CPU alone.
  public var gpuLayers: Int32 = 0
  /// Type of the KV cache's keys, such as `q8_0`; nil: the runtime's default.
  public var cacheTypeK: String?
  /// Type of the KV cache's values.
  public var cacheTypeV: String?
  /// Tokens; 0: the bundle's, else the model's own.
  public var contextSize: Int32 = 0

  public init() {}

  func withConfig<Result>(_ body: (UnsafePointer<eliza_llm_stream_config_t>) throws -> Result) throws -> Result {
    try withOptionalCString(promptCacheKey) { promptCacheKey in
      try withOptionalCString(drafterPath) { drafterPath in
        try withOptionalCString(grammar) { grammar in
          try withOptionalCString(cacheTypeK) { cacheTypeK in
            try withOptionalCString(cacheTypeV) { cacheTypeV in
              var config = eliza_llm_stream_config_t(
                max_tokens: maxTokens, temperature: temperature, top_p: topP, top_k: topK,
                repeat_penalty: repeatPenalty, slot_id: slot, prompt_cache_key: promptCacheKey, draft_min: draftMin,
                draft_max: draftMax, mtp_drafter_path: drafterPath, gbnf_grammar: grammar, disable_thinking: 0,
                n_gpu_layers: gpuLayers, cache_type_k: cacheTypeK, cache_type_v: cacheTypeV, context_size: contextSize)
              return try body(&config)
            }
          }
        }
      }
    }
  }
}
