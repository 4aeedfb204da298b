#include "given.hpp"

#include <algorithm>

namespace via::cli {

bench::Status gives_only(const BenchOptions& options, std::span<const std::string_view> ours) {
    for (const std::string& name : options.given) {
        if (std::find(ours.begin(), ours.end(), name) == ours.end())
            return bench::fail("{} is not for {}", name, options.bench);
    }
    return {};
}

}  // namespace via::cli
