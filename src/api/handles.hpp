// Handles of the C API: kind, NIC, generation and index in 64 bits; never dereferenced (VIPL 1.11).
//
//   63..60 kind   59..48 place of the NIC in the process's table   47..0 the object's own name:
//   for VI, CQ, listener and shared receive queue generation (32 bits) and index (16), for tag and
//   connection the engine's number
#pragma once

#include <cstdint>

#include "agent/agent.hpp"
#include "engine/engine.hpp"
#include "nic/nic.hpp"

namespace via::api {

enum class Kind : std::uint64_t {
    nic = 1,
    vi,
    completion_queue,
    tag,
    connection,
    listener,
    shared_receives
};

constexpr std::uint32_t nics_max = 4096;
constexpr std::uint64_t name_mask = (1ULL << 48) - 1;

inline void* make_handle(Kind kind, std::uint32_t nic, std::uint64_t name) {
    return reinterpret_cast<void*>((static_cast<std::uint64_t>(kind) << 60) |
                                   (std::uint64_t{nic} << 48) | (name & name_mask));
}
inline std::uint64_t bits_of(const void* handle) { return reinterpret_cast<std::uint64_t>(handle); }
inline bool is_kind(const void* handle, Kind kind) {
    return bits_of(handle) >> 60 == static_cast<std::uint64_t>(kind);
}
inline std::uint32_t nic_index(const void* handle) {
    return static_cast<std::uint32_t>(bits_of(handle) >> 48) & (nics_max - 1);
}
inline std::uint64_t name_of(const void* handle) { return bits_of(handle) & name_mask; }

/// An open NIC as the C API layer keeps it.
struct OpenNic {
    agent::Agent* agent;
    nic::Nic* nic;
    std::uint32_t index;       ///< in the process's table
    std::uint64_t generation;  ///< of the handle
};

/// The process's table; a slot is nullptr or a NIC that is open.
extern Atomic<OpenNic*> open_nics[nics_max];

inline OpenNic* find_nic_of(const void* handle, Kind kind) {
    return is_kind(handle, kind) ? open_nics[nic_index(handle)].load(std::memory_order_acquire)
                                 : nullptr;
}

/// The open NIC that `handle` names, or nullptr.
inline OpenNic* find_nic(const void* handle) {
    OpenNic* open = find_nic_of(handle, Kind::nic);
    return open != nullptr && open->generation == name_of(handle) ? open : nullptr;
}

struct FoundVi {
    OpenNic* open = nullptr;
    engine::Vi* vi = nullptr;
    explicit operator bool() const { return vi != nullptr; }
};

inline FoundVi find_vi(const void* handle) {
    OpenNic* open = find_nic_of(handle, Kind::vi);
    if (open == nullptr) return {};
    const std::uint64_t name = name_of(handle);
    engine::Vi* vi = open->nic->engine().vi_at(static_cast<std::uint32_t>(name & 0xFFFF));
    const bool alive = vi != nullptr &&
                       vi->generation.load(std::memory_order_acquire) == name >> 16 &&
                       (name >> 16 & 1) != 0;
    return alive ? FoundVi{open, vi} : FoundVi{};
}

inline std::uint64_t vi_name(const engine::Vi& vi) {
    return (std::uint64_t{vi.generation.load(std::memory_order_relaxed)} << 16) | vi.index;
}

struct FoundQueue {
    OpenNic* open = nullptr;
    queue::CompletionQueue* queue = nullptr;
    explicit operator bool() const { return queue != nullptr; }
};

inline FoundQueue find_queue(const void* handle) {
    OpenNic* open = find_nic_of(handle, Kind::completion_queue);
    if (open == nullptr) return {};
    return {open, open->nic->completion_queue(name_of(handle))};
}

/// In a forked child: is it a handle of a NIC that is the parent's, or of something on it?
bool is_inherited(const void* handle);
/// In a forked child, before anything else: what there is, is the parent's.
void begin_in_child();

/// Puts an agent into the table; its handle becomes valid. nullptr: the table is full.
OpenNic* enter_nic(std::unique_ptr<agent::Agent> agent, std::uint64_t generation);
enum class Closed : std::uint8_t {
    well,
    already,       ///< by somebody else
    out_of_order,  ///< see Agent::close()
};
/// Closes a NIC; `handler` had its errors.
Closed close_nic(const void* handle, agent::Handler& handler);
/// A number that no NIC of this process had before.
std::uint64_t next_generation();

}  // namespace via::api
