// What a NIC looks up for a message: where a page lies, whose buffer it is, which process's. Its
// table is on the NIC, or the NIC has a cache of one that the host keeps.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>

#include "lab/ledger.hpp"
#include "lab/task.hpp"

namespace via::lab {

class Adapter;
class Host;

/// What a NIC has to keep for its programs.
struct Load {
    std::int64_t vis = 1;
    std::int64_t registered = 0;  ///< bytes
};

/// A part takes memory of the NIC.
class Part {
public:
    virtual ~Part() = default;
    virtual std::int64_t nic_memory(const Load& load) const = 0;
};

enum class HandleKind : std::uint8_t { page, buffer, process };

/// Of a host's processes, which one, and what of its.
struct Handle {
    std::uint32_t process = 0;
    std::int64_t key = 0;  ///< page or buffer
    auto operator<=>(const Handle&) const = default;
};

/// A line that the NIC's cache does not have.
struct MissingLine {
    HandleKind kind = HandleKind::page;
    Handle first;
    std::int64_t entries = 0;
    std::function<void()> fill;                 ///< it is on the NIC now
    std::function<bool(const Handle&)> on_nic;  ///< is that one there?
};

class Lookup : public Part {
public:
    /// A miss is possible.
    virtual bool dynamic() const = 0;
    /// Time of the NIC. False: the host was asked for it, and it will be there later.
    virtual Task<bool> find(Adapter& adapter, Handle handle, MessageId message) = 0;
};

}  // namespace via::lab
