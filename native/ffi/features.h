// What this build can do, as the *_supported functions answer it: the one place to change when a feature lands.
#pragma once

namespace eliza {

inline constexpr bool kStreamSupported = true;
inline constexpr bool kTokenizeSupported = true;
inline constexpr bool kMtpSupported = true;      // speculative decoding
inline constexpr bool kKvQuantSupported = true;  // cache_type_k, cache_type_v
inline constexpr bool kEmbedSupported = true;
inline constexpr bool kEotSupported = true;

}  // namespace eliza
