package ai.eliza.inference;

import java.nio.ByteBuffer;
import java.nio.CharBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/**
 * The functions of the C ABI, as the JNI bridge (jni.cc) has them. Text crosses as bytes of UTF-8: JNI's own strings are
 * "modified" UTF-8, in which neither a NUL nor an emoji is what it is elsewhere.
 */
final class Native {
  static {
    System.loadLibrary("elizainference_jni");
  }

  private Native() {}

  static native long create(byte[] bundle);

  static native void destroy(long engine);

  static native int[] tokenize(long engine, byte[] text, boolean addSpecial, boolean parseSpecial);

  static native byte[] backends(long engine);

  static native byte[] metadata(long engine, byte[] key);

  static native long open(
      long engine,
      int maxTokens,
      float temperature,
      float topP,
      int topK,
      float repeatPenalty,
      int slot,
      byte[] promptCacheKey,
      int draftMin,
      int draftMax,
      byte[] drafterPath,
      byte[] grammar,
      int gpuLayers,
      byte[] cacheTypeK,
      byte[] cacheTypeV,
      int contextSize);

  static native void close(long stream);

  static native void prefill(long stream, int[] tokens);

  static native Chunk next(long stream);

  static native void cancel(long stream);

  static native void reset(long stream);

  static native int resetKeep(long stream, int tokens);

  static native void setSeed(long stream, long seed);

  static native byte[] statistics(long stream);

  static native void saveSlot(long stream, byte[] file);

  static native void restoreSlot(long stream, byte[] file);

  /** UTF-8 with a NUL at its end, as C has strings; null stays null. */
  static byte[] cString(String text) {
    if (text == null) return null;
    if (text.indexOf('\0') >= 0) {
      throw new InferenceException(
          InferenceException.INVALID_ARGUMENT,
          "\"" + text.replace("\0", "\\0") + "\" holds a NUL character, at which C would end it; leave it out");
    }
    return utf8(text + '\0');
  }

  static byte[] utf8(String text) {
    try {
      ByteBuffer bytes = StandardCharsets.UTF_8.newEncoder().encode(CharBuffer.wrap(text));
      return Arrays.copyOf(bytes.array(), bytes.limit());
    } catch (CharacterCodingException error) {
      throw new InferenceException(
          InferenceException.INVALID_ARGUMENT,
          "\"" + text + "\" holds one half of a surrogate pair, which is no character; pass whole characters");
    }
  }

  static String string(byte[] utf8) {
    return new String(utf8, StandardCharsets.UTF_8);
  }
}
