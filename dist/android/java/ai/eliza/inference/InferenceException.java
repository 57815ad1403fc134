package ai.eliza.inference;

/** A call that failed. The message says what was wrong, with which value, and what to do. */
public final class InferenceException extends RuntimeException {
  /** This build, backend or model has no such feature. */
  public static final int NOT_IMPLEMENTED = -1;

  /** An argument, or the order of calls, is wrong, or what was called is closed. */
  public static final int INVALID_ARGUMENT = -2;

  /** The bundle or a file in it is missing, malformed or ambiguous. */
  public static final int BUNDLE_INVALID = -3;

  /** The runtime failed, or a file could not be mapped. */
  public static final int RUNTIME_FAULT = -4;

  /** Memory ran out, or a request would not fit. */
  public static final int OUT_OF_MEMORY = -5;

  /** The bridge was built for another version of the library. */
  public static final int ABI_MISMATCH = -6;

  /** Cancelled; sticky until a reset. */
  public static final int CANCELLED = -7;

  private static final long serialVersionUID = 1;

  /** One of the constants above. */
  public final int status;

  InferenceException(int status, String message) {
    super(message);
    this.status = status;
  }

  /** Called by the JNI bridge. */
  InferenceException(int status, byte[] message) {
    this(status, Native.string(message));
  }
}
