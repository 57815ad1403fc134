// swift-tools-version:5.9
import PackageDescription

let package = Package(
  name: "ElizaInference",
  platforms: [.macOS(.v14)],
  products: [.library(name: "ElizaInference", targets: ["ElizaInference"])],
  targets: [
    // The SDK's header and library, by its pkg-config file where PKG_CONFIG_PATH has it.
    .systemLibrary(name: "CElizaInference", pkgConfig: "elizainference"),
    .target(name: "ElizaInference", dependencies: ["CElizaInference"]),
    .executableTarget(name: "generate", dependencies: ["ElizaInference"]),
  ]
)
