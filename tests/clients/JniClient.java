import ai.eliza.inference.Chunk;
import ai.eliza.inference.Engine;
import ai.eliza.inference.InferenceException;
import ai.eliza.inference.Stream;
import ai.eliza.inference.StreamOptions;
import java.io.PrintStream;
import java.util.concurrent.CountDownLatch;

/**
 * An app on the AAR's classes, without Android: JniClient COMMAND BUNDLE ARGUMENT... writes what jni_test.py reads. What
 * fails in a way that the command does not expect ends it with a stack trace.
 */
final class JniClient {
  private static PrintStream out;

  public static void main(String[] arguments) throws Exception {
    out = new PrintStream(System.out, true, "UTF-8");
    String bundle = arguments[1];
    switch (arguments[0]) {
      case "generate":
        generate(bundle, arguments[2], Integer.parseInt(arguments[3]));
        break;
      case "resets":
        resets(bundle);
        break;
      case "cancel":
        stopFromAnotherThread(bundle, Stream::cancel);
        break;
      case "close":
        stopFromAnotherThread(bundle, Stream::close);
        break;
      case "errors":
        errors(bundle);
        break;
      case "options":
        options(bundle);
        break;
      case "facts":
        facts(bundle);
        break;
      case "slots":
        slots(bundle, arguments[2]);
        break;
      case "many":
        many(bundle, Integer.parseInt(arguments[2]));
        break;
      default:
        throw new IllegalArgumentException(arguments[0]);
    }
  }

  private static StreamOptions tokens(int count) {
    StreamOptions options = new StreamOptions();
    options.maxTokens = count;
    return options;
  }

  private static String pull(Stream stream) {
    StringBuilder text = new StringBuilder();
    Chunk chunk;
    do {
      chunk = stream.next();
      text.append(chunk.text);
    } while (!chunk.last);
    return text.toString();
  }

  private static void generate(String bundle, String prompt, int count) {
    try (Engine engine = Engine.open(bundle);
        Stream stream = engine.stream(tokens(count))) {
      stream.prefill(engine.tokenize(prompt, true, false));
      int ids = 0;
      Chunk chunk;
      do {
        chunk = stream.next();
        ids += chunk.tokens.length;
        out.print(chunk.text);
      } while (!chunk.last);
      out.print("\n" + ids + " " + stream.next().tokens.length + "\n");
    }
  }

  private static void resets(String bundle) {
    try (Engine engine = Engine.open(bundle);
        Stream stream = engine.stream(tokens(12))) {
      int[] prompt = engine.tokenize("abc", true, false);
      stream.prefill(prompt);
      out.println(pull(stream));
      stream.cancel();
      fails(stream::next);
      stream.reset();
      stream.prefill(prompt);
      out.println(pull(stream));
      out.println(stream.resetKeep(prompt.length - 1) + " of " + prompt.length);
      stream.prefill(new int[] {prompt[prompt.length - 1]});
      out.println(pull(stream));
    }
  }

  private interface Stop {
    void stop(Stream stream);
  }

  // A stream that is pulled for ever, until `how` ends it.
  private static void stopFromAnotherThread(String bundle, Stop how) throws InterruptedException {
    try (Engine engine = Engine.open(bundle);
        Stream stream = engine.stream(new StreamOptions())) {
      stream.prefill(engine.tokenize("abc", true, false));
      CountDownLatch pulled = new CountDownLatch(3);
      InferenceException[] caught = new InferenceException[1];
      Thread puller =
          new Thread(
              () -> {
                try {
                  while (true) {
                    stream.next();
                    pulled.countDown();
                  }
                } catch (InferenceException error) {
                  caught[0] = error;
                }
              });
      puller.start();
      pulled.await();
      how.stop(stream);
      puller.join();
      out.println(caught[0].status);
    }
  }

  private interface Call {
    void call();
  }

  private static void fails(Call call) {
    try {
      call.call();
      out.println("nothing was thrown");
    } catch (InferenceException error) {
      out.println(error.status + " " + error.getMessage());
    }
  }

  private static void errors(String bundle) {
    fails(() -> Engine.open("/no/such/\uD83D\uDE00"));
    fails(() -> Engine.open("/no\0such"));
    Engine engine = Engine.open(bundle);
    fails(() -> engine.tokenize("half \uD83D", true, false));
    fails(() -> engine.metadata("no.such.key"));
    Stream stream = engine.stream(new StreamOptions());
    fails(stream::next);
    fails(() -> stream.prefill(new int[0]));
    fails(() -> stream.prefill(new int[] {-5}));
    fails(() -> stream.resetKeep(-1));
    stream.close();
    stream.close();
    stream.cancel();
    fails(stream::next);
    fails(stream::statistics);
    fails(stream::reset);
    fails(() -> stream.setSeed(1));
    engine.close();
    engine.close();
    fails(() -> engine.tokenize("abc", true, false));
    fails(() -> engine.stream(new StreamOptions()));
    fails(engine::backends);
  }

  private interface Change {
    void change(StreamOptions options);
  }

  // Each value is wrong, and the library says of which it is.
  private static void options(String bundle) {
    try (Engine engine = Engine.open(bundle)) {
      Change[] changes = {
        options -> options.maxTokens = -3,
        options -> options.temperature = -4,
        options -> options.topK = -5,
        options -> options.repeatPenalty = Float.POSITIVE_INFINITY,
        options -> options.draftMin = -6,
        options -> {
          options.draftMax = 4;
          options.drafterPath = "nowhere.gguf";
        },
        options -> options.grammar = "broken",
        options -> options.cacheTypeK = "no_such_k",
        options -> options.cacheTypeV = "no_such_v",
        options -> options.contextSize = -7,
      };
      for (Change change : changes) {
        StreamOptions options = new StreamOptions();
        change.change(options);
        fails(() -> engine.stream(options));
      }
    }
  }

  private static void facts(String bundle) {
    try (Engine engine = Engine.open(bundle);
        Stream stream = engine.stream(tokens(3))) {
      stream.prefill(engine.tokenize("abc", true, false));
      pull(stream);
      out.println(stream.statistics());
      out.println(engine.backends());
      out.println(engine.metadata("general.architecture"));
    }
  }

  private static void slots(String bundle, String file) {
    try (Engine engine = Engine.open(bundle);
        Stream stream = engine.stream(tokens(5))) {
      stream.prefill(engine.tokenize("abc", true, false));
      pull(stream);
      stream.saveSlot(file);
      try (Stream other = engine.stream(tokens(5))) {
        other.restoreSlot(file);
        other.prefill(engine.tokenize("x", false, false));
        out.println(pull(other));
        fails(() -> other.restoreSlot(file + ".missing"));
      }
    }
  }

  private static void many(String bundle, int times) {
    try (Engine engine = Engine.open(bundle)) {
      int[] prompt = engine.tokenize("abc", true, false);
      for (int i = 0; i < times; ++i) {
        try (Stream stream = engine.stream(tokens(4))) {
          stream.prefill(prompt);
          if (!pull(stream).equals("defg")) throw new IllegalStateException("round " + i);
          try {
            stream.prefill(new int[0]);
            throw new IllegalStateException("round " + i);
          } catch (InferenceException expected) {
            // Its message is an array that the bridge made: one more for each round, were it kept.
          }
        }
      }
      out.println(times);
    }
  }
}
