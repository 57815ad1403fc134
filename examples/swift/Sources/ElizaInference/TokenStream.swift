import CElizaInference
import Dispatch

/// One generation at a time, with the context that it goes on from; made by `Engine.stream`.
// Unchecked: see Engine.
public final class TokenStream: @unchecked Sendable {
  private let handle: OpaquePointer
  // The engine's end would be the stream's.
  private let engine: Engine
  // Where calls wait that a task waits for: they block, and Swift's own threads may not.
  private let queue = DispatchQueue(label: "ai.eliza.inference.stream")

  init(handle: OpaquePointer, engine: Engine) {
    self.handle = handle
    self.engine = engine
  }

  deinit { close() }

  /// Appends tokens to the context, and starts a generation.
  public func prefill(_ tokens: [Int32]) throws {
    _ = try checked { eliza_inference_llm_stream_prefill(handle, tokens, tokens.count, $0) }
  }

  /// Generates the next few tokens; `Chunk.last` is true when the generation has ended.
  public func next() throws -> Chunk {
    let (tokenCapacity, textCapacity) = (32, 1024)
    return try withUnsafeTemporaryAllocation(of: Int32.self, capacity: tokenCapacity) { tokens in
      try withUnsafeTemporaryAllocation(of: CChar.self, capacity: textCapacity) { text in
        var count = 0
        var (drafted, accepted): (Int32, Int32) = (0, 0)
        let status = try checked { message in
          eliza_inference_llm_stream_next(
            handle, tokens.baseAddress, tokenCapacity, &count, text.baseAddress, textCapacity, &drafted, &accepted,
            message)
        }
        return Chunk(
          text: String(cString: text.baseAddress!), tokens: Array(tokens.prefix(count)), last: status == 1,
          drafted: Int(drafted), accepted: Int(accepted))
      }
    }
  }

  /// Prefills, then generates until the end, as the loop over it asks for more. Where the task is cancelled, the call
  /// in flight is, too, and the loop throws `CancellationError`; `reset` makes the stream usable again.
  public func generate(_ prompt: [Int32]) -> Generation { Generation(stream: self, prompt: prompt) }

  /// Cancels, from any thread, without waiting: `prefill` and `next` throw `InferenceError` with `cancelled`, those in
  /// flight soon, later ones at once, until a reset.
  public func cancel() { _ = eliza_inference_llm_stream_cancel(handle) }

  /// Empties the context and forgets a cancel.
  public func reset() throws { _ = try checkedStatus(eliza_inference_llm_stream_reset(handle)) }

  /// Keeps the first tokens of the context, drops the rest, and forgets a cancel. Returns how many tokens were kept: 0
  /// where the runtime cannot keep a part.
  public func resetKeep(_ tokens: Int) throws -> Int {
    Int(try checkedStatus(eliza_inference_llm_stream_reset_keep(handle, Int32(clamping: tokens))))
  }

  /// Seeds the sampler, before the first `next` of a generation. Temperature 0 ignores it.
  public func setSeed(_ seed: UInt64) throws {
    _ = try checkedStatus(eliza_inference_llm_stream_set_seed(handle, seed))
  }

  /// Backend, counts of tokens, timings and more: a JSON object (docs/abi.md).
  public func statistics() throws -> String { try text { eliza_inference_llm_stream_stats(handle, $0, $1) } }

  /// Saves the context to a file, for `restoreSlot`.
  public func saveSlot(_ file: String) throws {
    _ = try withCString(file) { file in try checked { eliza_inference_llm_stream_save_slot(handle, file, $0) } }
  }

  /// Restores a context that the same model saved; a file that it did not is refused, and changes nothing.
  public func restoreSlot(_ file: String) throws {
    _ = try withCString(file) { file in try checked { eliza_inference_llm_stream_restore_slot(handle, file, $0) } }
  }

  /// Closes the stream; a call in flight throws `InferenceError` with `cancelled`.
  public func close() { eliza_inference_llm_stream_close(handle) }

  // Runs `body` on the queue; a cancel of the task cancels the stream.
  fileprivate func run<Result: Sendable>(_ body: @escaping @Sendable () throws -> Result) async throws -> Result {
    try Task.checkCancellation()
    do {
      return try await withTaskCancellationHandler {
        try await withCheckedThrowingContinuation { continuation in
          queue.async { continuation.resume(with: Swift.Result { try body() }) }
        }
      } onCancel: {
        cancel()
      }
    } catch let error as InferenceError where error.status == .cancelled && Task.isCancelled {
      throw CancellationError()
    }
  }
}

/// The chunks of one generation, computed as they are asked for.
public struct Generation: AsyncSequence, Sendable {
  public typealias Element = Chunk

  let stream: TokenStream
  let prompt: [Int32]

  public func makeAsyncIterator() -> Iterator { Iterator(stream: stream, prompt: prompt) }

  public struct Iterator: AsyncIteratorProtocol {
    let stream: TokenStream
    // Until it is in the context.
    var prompt: [Int32]?
    var ended = false

    init(stream: TokenStream, prompt: [Int32]) {
      self.stream = stream
      self.prompt = prompt
    }

    public mutating func next() async throws -> Chunk? {
      if ended { return nil }
      ended = true  // whatever throws ends it, too
      let (stream, prompt) = (stream, prompt)
      let chunk = try await stream.run {
        if let prompt { try stream.prefill(prompt) }
        return try stream.next()
      }
      self.prompt = nil
      ended = chunk.last
      return chunk
    }
  }
}

/// What one step generated.
public struct Chunk: Sendable {
  /// Whole characters; may be empty while a character is not complete.
  public let text: String
  /// The ids of the tokens.
  public let tokens: [Int32]
  /// Whether the generation has ended with this chunk.
  public let last: Bool
  /// Tokens that a drafter proposed in this step.
  public let drafted: Int
  /// How many of these were right.
  public let accepted: Int
}
