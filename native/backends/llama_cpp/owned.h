// Objects of llama.cpp that are freed with their owner.
#pragma once

#include <memory>

#include "llama.h"

namespace eliza::llama_cpp {

struct Deleter {
  void operator()(llama_context* context) const { llama_free(context); }
  void operator()(llama_sampler* sampler) const { llama_sampler_free(sampler); }
};

using ContextPtr = std::unique_ptr<llama_context, Deleter>;
using SamplerPtr = std::unique_ptr<llama_sampler, Deleter>;

}  // namespace eliza::llama_cpp
