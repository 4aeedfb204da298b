// The media that the library was built with, each a folder of src/device.
#pragma once

#include <string>
#include <vector>

namespace conformance {

inline const std::vector<std::string>& media() {
#define VIA_MEDIUM(name) #name,
    static const std::vector<std::string> names{
#include "media.inc"
    };
#undef VIA_MEDIUM
    return names;
}

/// A medium between processes: all but those that live within one.
inline bool is_between_processes(const std::string& medium) {
    return medium != "loopback" && medium != "sim";
}

}  // namespace conformance
