#include "nic/path.hpp"

#include <algorithm>

namespace via::nic {

engine::PathId FoundPaths::take(std::uint64_t cookie) {
    const auto at = std::find_if(found_.begin(), found_.end(),
                                 [=](const Found& found) { return found.cookie == cookie; });
    if (at == found_.end()) return engine::no_path;
    const engine::PathId path = at->path;
    found_.erase(at);
    return path;
}

void FoundPaths::forget(engine::PathId path) {
    std::erase_if(found_, [path](const Found& found) { return found.path == path; });
}

}  // namespace via::nic
