import CElizaInference

/// What the library says of a call that failed: what was wrong, with which value, and what to do.
public struct InferenceError: Error, CustomStringConvertible, Sendable {
  /// The header's `ELIZA_ERR_*`.
  public struct Status: RawRepresentable, Equatable, Sendable {
    public let rawValue: Int32
    public init(rawValue: Int32) { self.rawValue = rawValue }

    public static let notImplemented = Status(rawValue: ELIZA_ERR_NOT_IMPLEMENTED)
    public static let invalidArgument = Status(rawValue: ELIZA_ERR_INVALID_ARG)
    public static let bundleInvalid = Status(rawValue: ELIZA_ERR_BUNDLE_INVALID)
    public static let runtimeFault = Status(rawValue: ELIZA_ERR_FFI_FAULT)
    public static let outOfMemory = Status(rawValue: ELIZA_ERR_OOM)
    public static let abiMismatch = Status(rawValue: ELIZA_ERR_ABI_MISMATCH)
    public static let cancelled = Status(rawValue: ELIZA_ERR_CANCELLED)
  }

  public let status: Status
  public let description: String
}

typealias Message = UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>

// Calls with a place for the message, and throws that where the status is negative.
func checked(_ call: (Message) -> Int32) throws -> Int32 {
  var message: UnsafeMutablePointer<CChar>?
  let status = call(&message)
  guard status < 0 else { return status }
  throw error(status, message)
}

// The same for a handle, which is nil where the call failed.
func checkedHandle(_ call: (Message) -> OpaquePointer?) throws -> OpaquePointer {
  var message: UnsafeMutablePointer<CChar>?
  if let handle = call(&message) { return handle }
  throw error(eliza_inference_last_status(), message)
}

// The same for a call that gives no message.
func checkedStatus(_ status: Int32) throws -> Int32 {
  guard status < 0 else { return status }
  throw error(status, nil)
}

// The text that a call makes.
func text(_ call: (Message, Message) -> Int32) throws -> String {
  var text: UnsafeMutablePointer<CChar>?
  _ = try checked { call(&text, $0) }
  defer { eliza_inference_free_string(text) }
  return String(cString: text!)
}

private func error(_ status: Int32, _ message: UnsafeMutablePointer<CChar>?) -> InferenceError {
  defer { eliza_inference_free_string(message) }
  let description =
    message.map { String(cString: $0) }
    ?? (status == ELIZA_ERR_INVALID_ARG ? "the stream is closed" : "no reason given (status \(status))")
  return InferenceError(status: .init(rawValue: status), description: description)
}

// Throws for a text that C would see a part of.
func withCString<Result>(_ text: String, _ body: (UnsafePointer<CChar>) throws -> Result) throws -> Result {
  guard !text.utf8.contains(0) else {
    throw InferenceError(status: .invalidArgument, description: "a text with a NUL character in it names nothing")
  }
  return try text.withCString(body)
}

func withOptionalCString<Result>(_ text: String?, _ body: (UnsafePointer<CChar>?) throws -> Result) throws -> Result {
  guard let text else { return try body(nil) }
  return try withCString(text, body)
}

// The config struct has no size field: the version is the only handshake.
func requireABI() throws {
  let version = String(cString: eliza_inference_abi_version())
  guard version == "15" else {
    let description = "this client is for ABI 15, and the library has \(version)"
    throw InferenceError(status: .abiMismatch, description: description)
  }
}
