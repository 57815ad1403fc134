package ai.eliza.inference;

/** What one step generated. */
public final class Chunk {
  /** Whole characters; may be empty while a character is not complete. */
  public final String text;

  /** The ids of the tokens. */
  public final int[] tokens;

  /** Whether the generation has ended with this chunk. */
  public final boolean last;

  /** Tokens that a drafter proposed in this step. */
  public final int drafted;

  /** How many of these were right. */
  public final int accepted;

  /** Called by the JNI bridge. */
  Chunk(byte[] text, int[] tokens, boolean last, int drafted, int accepted) {
    this.text = Native.string(text);
    this.tokens = tokens;
    this.last = last;
    this.drafted = drafted;
    this.accepted = accepted;
  }
}
