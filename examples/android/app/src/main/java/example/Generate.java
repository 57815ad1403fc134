package example;

import ai.eliza.inference.Chunk;
import ai.eliza.inference.Engine;
import ai.eliza.inference.InferenceException;
import ai.eliza.inference.Stream;
import ai.eliza.inference.StreamOptions;
import java.util.function.Consumer;

/** Streams what a model says after a prompt. */
public final class Generate {
  private Generate() {}

  /**
   * Hands on the text piece by piece. It blocks while the model computes: call it on a thread of its own.
   *
   * @param bundle path of a bundle that the app may read, such as one in its files directory
   * @param maxTokens the most tokens to generate
   */
  public static void generate(String bundle, String prompt, int maxTokens, Consumer<String> onText) {
    StreamOptions options = new StreamOptions();
    options.maxTokens = maxTokens;
    try (Engine engine = Engine.open(bundle);
        Stream stream = engine.stream(options)) {
      // The last true: "<|im_start|>" and the like become special tokens, as a chat template wants it that you filled
      // in. What a user typed takes false, or it could end its turn and forge another.
      stream.prefill(engine.tokenize(prompt, true, true));
      Chunk chunk;
      do {
        chunk = stream.next();
        onText.accept(chunk.text);
      } while (!chunk.last);
    }
  }

  /** The same on any machine with the two libraries: Generate BUNDLE PROMPT. */
  public static void main(String[] arguments) {
    try {
      generate(arguments[0], arguments[1], 64, System.out::print);
    } catch (InferenceException error) {
      System.err.println(error.getMessage());
      System.exit(1);
    }
  }
}
