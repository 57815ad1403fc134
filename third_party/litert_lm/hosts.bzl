"""Where there is a LiteRT-LM to test with."""

# For target_compatible_with.
LITERT_LM_HOSTS = select({
    "//third_party/litert_lm:linux_arm64": [],
    "//third_party/litert_lm:linux_x86_64": [],
    "//third_party/litert_lm:macos_arm64": [],
    "//conditions:default": ["@platforms//:incompatible"],
})
