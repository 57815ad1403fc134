package ai.eliza.inference;

import java.util.Objects;
import java.util.concurrent.atomic.AtomicLong;

/** One generation at a time, with the context that it goes on from; made by {@link Engine#stream}. */
public final class Stream implements AutoCloseable {
  private final AtomicLong handle;

  Stream(long handle) {
    this.handle = new AtomicLong(handle);
  }

  /** Appends tokens to the context, and starts a generation. */
  public void prefill(int[] tokens) {
    Native.prefill(handle.get(), Objects.requireNonNull(tokens, "tokens"));
  }

  /** Generates the next few tokens; {@link Chunk#last} is true when the generation has ended. */
  public Chunk next() {
    return Native.next(handle.get());
  }

  /**
   * Cancels, from any thread, without waiting: {@link #prefill} and {@link #next} throw {@link
   * InferenceException#CANCELLED}, those in flight soon, later ones at once, until a reset. A stream that is closed is
   * left alone.
   */
  public void cancel() {
    Native.cancel(handle.get());
  }

  /** Empties the context and forgets a cancel. */
  public void reset() {
    Native.reset(handle.get());
  }

  /**
   * Keeps the first tokens of the context, drops the rest, and forgets a cancel.
   *
   * @return how many tokens were kept: 0 where the runtime cannot keep a part
   */
  public int resetKeep(int tokens) {
    return Native.resetKeep(handle.get(), tokens);
  }

  /** Seeds the sampler, before the first {@link #next} of a generation. Temperature 0 ignores it. */
  public void setSeed(long seed) {
    Native.setSeed(handle.get(), seed);
  }

  /** Backend, counts of tokens, timings and more: a JSON object (docs/abi.md). */
  public String statistics() {
    return Native.string(Native.statistics(handle.get()));
  }

  /** Saves the context to a file, for {@link #restoreSlot}. */
  public void saveSlot(String file) {
    Native.saveSlot(handle.get(), Native.cString(Objects.requireNonNull(file, "file")));
  }

  /** Restores a context that the same model saved; a file that it did not is refused, and changes nothing. */
  public void restoreSlot(String file) {
    Native.restoreSlot(handle.get(), Native.cString(Objects.requireNonNull(file, "file")));
  }

  /** Closes the stream; a call in flight ends with {@link InferenceException#CANCELLED}. */
  @Override
  public void close() {
    Native.close(handle.getAndSet(0));
  }
}
