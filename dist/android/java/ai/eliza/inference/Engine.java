package ai.eliza.inference;

import java.util.Objects;
import java.util.concurrent.atomic.AtomicLong;

/**
 * A model on this device: a bundle, opened. Streams are made of it.
 *
 * <pre>{@code
 * try (Engine engine = Engine.open("/data/.../bundle");
 *     Stream stream = engine.stream(new StreamOptions())) {
 *   stream.prefill(engine.tokenize("Name the capital of France.", true, true));
 *   Chunk chunk;
 *   do {
 *     chunk = stream.next();
 *     System.out.print(chunk.text);
 *   } while (!chunk.last);
 * }
 * }</pre>
 *
 * <p>Nothing runs between two calls: text is pulled. Calls block while the model computes, so they belong on a thread
 * of their own; every method may be called from any thread. What fails throws {@link InferenceException}, also any
 * call after {@link #close}.
 */
public final class Engine implements AutoCloseable {
  private final AtomicLong handle;

  private Engine(long handle) {
    this.handle = new AtomicLong(handle);
  }

  /**
   * Opens a bundle, the directory that holds the model. The model itself is loaded by the first call that needs it.
   *
   * @param bundle path of the directory
   */
  public static Engine open(String bundle) {
    return new Engine(Native.create(Native.cString(Objects.requireNonNull(bundle, "bundle"))));
  }

  /**
   * The token ids of a text.
   *
   * @param addSpecial add what the model expects at the start and the end, such as BOS
   * @param parseSpecial the text of a special token becomes that token; false for text from users
   */
  public int[] tokenize(String text, boolean addSpecial, boolean parseSpecial) {
    return Native.tokenize(handle.get(), Native.utf8(Objects.requireNonNull(text, "text")), addSpecial, parseSpecial);
  }

  /** Opens a stream, which chooses the backend and loads the model. Several may be open at once. */
  public Stream stream(StreamOptions options) {
    return new Stream(
        Native.open(
            handle.get(),
            options.maxTokens,
            options.temperature,
            options.topP,
            options.topK,
            options.repeatPenalty,
            options.slot,
            Native.cString(options.promptCacheKey),
            options.draftMin,
            options.draftMax,
            Native.cString(options.drafterPath),
            Native.cString(options.grammar),
            options.gpuLayers,
            Native.cString(options.cacheTypeK),
            Native.cString(options.cacheTypeV),
            options.contextSize));
  }

  /** Which backend answers for this bundle, which ones do not, and why: a JSON object (docs/backends.md). */
  public String backends() {
    return Native.string(Native.backends(handle.get()));
  }

  /** A value of the model's metadata, such as {@code tokenizer.chat_template}. */
  public String metadata(String key) {
    return Native.string(Native.metadata(handle.get(), Native.cString(Objects.requireNonNull(key, "key"))));
  }

  /** Closes the engine and its streams; calls in flight end with {@link InferenceException#CANCELLED}. */
  @Override
  public void close() {
    Native.destroy(handle.getAndSet(0));
  }
}
