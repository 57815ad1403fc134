// Streams what a model says after a prompt: generate BUNDLE PROMPT
import ElizaInference
import Foundation

func say(_ text: String, to file: FileHandle) { file.write(Data(text.utf8)) }

let arguments = CommandLine.arguments
guard arguments.count == 3 else {
  say("usage: \(arguments[0]) BUNDLE PROMPT\n", to: .standardError)
  exit(2)
}
do {
  let engine = try Engine(bundle: arguments[1])
  var options = StreamOptions()
  options.maxTokens = 64
  // True: "<|im_start|>" and the like become special tokens, as a chat template wants it that you filled in. What a
  // user typed takes false, the default, or it could end its turn and forge another.
  let prompt = try engine.tokenize(arguments[2], parseSpecial: true)
  for try await chunk in try engine.stream(options).generate(prompt) {
    say(chunk.text, to: .standardOutput)
  }
} catch {
  say("\(error)\n", to: .standardError)
  exit(1)
}
