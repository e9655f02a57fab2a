#include "tests/conformance/skips.h"

#include <fnmatch.h>

namespace gridclock {

const Exceptions& KnownExceptions() {
  static const Exceptions exceptions{
      .skipped =
          {{"cpu/*/huge",
            "a call of more than 2^31 elements takes 12 GiB for bytes and over 60 GiB for f32: "
            "the suite keeps copies of inputs and results beside the tensors"},
           {"cuda/vector_add/serial/*/huge", "one thread takes minutes"},
           {"cuda/vector_add/one_block/*/huge", "one block takes a minute"},
           {"cuda/softmax/naive/*/huge/one_row", "one thread has a row of 2^31 elements: hours"},
           {"cuda/sum/naive/*/huge/one_row", "one thread has a sum of 2^31 terms: hours"},
           {"cuda/log_softmax/naive/*/huge/one_row",
            "one thread has a row of 2^31 elements: hours"},
           {"cuda/layernorm/naive/*/huge/one_row", "one thread has a row of 2^31 elements: hours"},
           {"cuda/rmsnorm/naive/*/huge/one_row", "one thread has a row of 2^31 elements: hours"},
           {"cuda/mean/naive/*/huge/one_row", "one thread has a sum of 2^31 terms: hours"},
           {"cuda/max/naive/*/huge/one_row", "one thread has 2^31 elements: hours"},
           {"cuda/argmax/naive/*/huge/one_row", "one thread has 2^31 elements: hours"},
           {"cuda/cumsum/naive/*/huge/one_row", "one thread has a row of 2^31 elements: hours"},
           {"cuda/softmax/registers/f64/*", "it takes numbers of at most 32 bits"},
           {"cuda/log_softmax/registers/f64/*", "it takes numbers of at most 32 bits"},
           {"cuda/layernorm/registers/f64/*", "it takes numbers of at most 32 bits"},
           {"cuda/rmsnorm/registers/f64/*", "it takes numbers of at most 32 bits"},
           {"cuda/matmul*/register_tiled/*16/*", "it takes f32 and f64"},
           {"cuda/matmul/cublaslt_tf32/f64/*", "it takes f32"},
           {"cuda/matmul/cublaslt_tf32/f32/extreme",
            "the largest numbers are infinite as tf32, and an infinity times 0 is NaN"},
           {"cuda/matmul/cublaslt_tf32/*16/*", "it takes f32"},
           {"*/layernorm/*/f[36][24]/extreme",
            "squares of the largest numbers are infinite, so that a result is 0 times an infinite "
            "weight, which is NaN; kHuge and kTiny have no infinities"},
           {"cuda/layernorm/*/*16/extreme",
            "an infinite weight makes NaN of a distance of 0, and an infinity of one that is 0 but "
            "for roundings; on a CPU these are asked"},
           {"cuda/cdist/matmul/f32/huge", "the one call of this size has p = 1"},
           {"cuda/adam*/*/huge", "it cuts lists as foreach_add does"},
           {"cuda/sgd/*/huge", "it cuts lists as foreach_add does"},
           {"cuda/*/f64/huge",
            "indices are computed as for f32, and it takes twice the memory and time"},
           {"cuda/*/bf16/huge", "the code is that of f16"},
           {"cuda/empty/*/huge", "it has no tensors"},
           {"cuda/spin/*/huge", "it has no tensors"}},
      .unseen = {{"cuda/*/cublaslt*/*",
                  "the library writes by cp.async.bulk, of which initcheck sees nothing before its "
                  "version 2025.4, and with tensor maps not all since"}},
  };
  return exceptions;
}

bool Fits(const std::string& pattern, const std::string& name) {
  return fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

std::optional<std::string> ReasonFor(const std::vector<Exception>& list, const std::string& name) {
  for (const Exception& exception : list) {
    if (Fits(exception.pattern, name)) return exception.reason;
  }
  return std::nullopt;
}

}  // namespace gridclock
