package ai.eliza.inference;

/** How a stream generates: the C ABI's config, with the same defaults. In Kotlin: {@code StreamOptions().apply { maxTokens = 64 }}. */
public final class StreamOptions {
  /** Tokens for each generation; 0: until the end of the text or a full context. */
  public int maxTokens = 0;

  /** 0: greedy and deterministic. */
  public float temperature = 0;

  /** Nucleus sampling; 1: off. */
  public float topP = 1;

  /** 0: off. */
  public int topK = 0;

  /** Over the last 64 tokens; 1: off. */
  public float repeatPenalty = 1;

  /** Which warm KV cache of {@link #promptCacheKey} to use; -1: none. */
  public int slot = -1;

  /** null: none. */
  public String promptCacheKey = null;

  /** Speculative decoding: the fewest tokens to draft in a step. */
  public int draftMin = 0;

  /** The most tokens to draft in a step; 0: no drafting. */
  public int draftMax = 0;

  /** The drafter model, absolute or relative to the bundle; null: none. */
  public String drafterPath = null;

  /** A GBNF grammar that every generated token satisfies; null: none. */
  public String grammar = null;

  /** -1: all; 0: the CPU alone. */
  public int gpuLayers = 0;

  /** Type of the KV cache's keys, such as {@code q8_0}; null: the runtime's default. */
  public String cacheTypeK = null;

  /** Type of the KV cache's values. */
  public String cacheTypeV = null;

  /** Tokens; 0: the bundle's, else the model's own. */
  public int contextSize = 0;
}
