// What upstream's tests use of common/log.cpp beyond what common-log.cc has.

#include "eliza/test-log.h"

int common_log_get_verbosity(ggml_log_level level) {
  switch (level) {
    case GGML_LOG_LEVEL_NONE:
      return LOG_LEVEL_OUTPUT;
    case GGML_LOG_LEVEL_ERROR:
      return LOG_LEVEL_ERROR;
    case GGML_LOG_LEVEL_WARN:
      return LOG_LEVEL_WARN;
    default:
      return LOG_LEVEL_DEBUG;
  }
}

// Nothing is kept back.
void common_log_flush(common_log*) {}
