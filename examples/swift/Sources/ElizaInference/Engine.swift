import CElizaInference

/// A model on this device: a bundle, opened. Streams are made of it.
///
/// ```swift
/// let engine = try Engine(bundle: path)
/// let prompt = try engine.tokenize("Name the capital of France.")
/// for try await chunk in try engine.stream().generate(prompt) {
///   print(chunk.text, terminator: "")
/// }
/// ```
///
/// Nothing runs between two calls: text is pulled. Calls block while the model computes, so they belong off the main
/// thread, where `TokenStream.generate` has them already; every method may be called from any thread.
// Unchecked: a handle is an id that the library looks up under a lock of its own and never gives to anything else, so a
// closed one, too, may be used from anywhere: the call fails.
public final class Engine: @unchecked Sendable {
  private let handle: OpaquePointer

  /// Opens a bundle, the directory that holds the model. The model itself is loaded by the first call that needs it.
  public init(bundle: String) throws {
    try requireABI()
    handle = try withCString(bundle) { bundle in try checkedHandle { eliza_inference_create(bundle, $0) } }
  }

  deinit { close() }

  /// The token ids of a text.
  ///
  /// - Parameters:
  ///   - addSpecial: add what the model expects at the start and the end, such as BOS
  ///   - parseSpecial: the text of a special token becomes that token; false for text from users
  public func tokenize(_ text: String, addSpecial: Bool = true, parseSpecial: Bool = false) throws -> [Int32] {
    var tokens: UnsafeMutablePointer<Int32>?
    var count = 0
    _ = try text.withCString { bytes in
      try checked { message in
        eliza_inference_tokenize(
          handle, bytes, text.utf8.count, addSpecial ? 1 : 0, parseSpecial ? 1 : 0, &tokens, &count, message)
      }
    }
    defer { eliza_inference_free_tokens(tokens) }
    return Array(UnsafeBufferPointer(start: tokens, count: count))
  }

  /// Opens a stream, which chooses the backend and loads the model. Several may be open at once.
  public func stream(_ options: StreamOptions = StreamOptions()) throws -> TokenStream {
    let stream = try options.withConfig { config in
      try checkedHandle { eliza_inference_llm_stream_open(handle, config, $0) }
    }
    return TokenStream(handle: stream, engine: self)
  }

  /// Which backend answers for this bundle, which ones do not, and why: a JSON object (docs/backends.md).
  public func backends() throws -> String {
    try text { eliza_inference_llm_backend_report(handle, $0, $1) }
  }

  /// A value of the model's metadata, such as `tokenizer.chat_template`.
  public func metadata(_ key: String) throws -> String {
    try withCString(key) { key in try text { eliza_inference_model_meta(handle, key, $0, $1) } }
  }

  /// Closes the engine and its streams; calls in flight throw `InferenceError` with `cancelled`.
  public func close() { eliza_inference_destroy(handle) }
}
