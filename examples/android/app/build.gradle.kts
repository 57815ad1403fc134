plugins {
    id("com.android.application") version "8.13.0"
}

android {
    namespace = "example"
    compileSdk = 36

    defaultConfig {
        applicationId = "example.generate"
        minSdk = 26
        targetSdk = 36
        // Phones and the emulator: what the AAR has.
        ndk { abiFilters += listOf("arm64-v8a", "x86_64") }
    }
}

dependencies {
    // ./bazelw build //dist:android_aar makes it in bazel-bin/dist.
    implementation(files("libs/libelizainference-0.1.0.aar"))
}
