// The agent's side of a NIC's small table (option table_entries): loads lines of pages when the NIC
// asks for them, and locks them then, not when memory is registered. What the NIC's table holds is
// locked; what left it stays locked until the room is needed, the longest unused first.
//
// Threads: the holder of the turn. Locking may wait for memory, and the NIC's frames with it.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "agent/locked_memory.hpp"
#include "agent/nic_options.hpp"
#include "base/list.hpp"
#include "memory/translation_cache.hpp"

namespace via::agent {

class LockedLines final : public memory::LineLoader {
public:
    /// `bytes_max`: the high-water mark, in bytes of locked pages. `policy`: never, prefer,
    /// require.
    LockedLines(LockedMemory& memory, Pin policy, std::uint64_t bytes_max, std::string nic_name)
        : memory_(memory), policy_(policy), bytes_max_(bytes_max), nic_name_(std::move(nic_name)) {}
    ~LockedLines() override { end(); }
    LockedLines(const LockedLines&) = delete;
    LockedLines& operator=(const LockedLines&) = delete;

    /// Whose lines they are; lines that it holds are taken back when nothing else makes room.
    void serve(memory::TranslationCache& table) { table_ = &table; }

    bool load(const memory::Line& line) override;
    void evicted(const memory::LineName& line) override;
    void forget(memory::MemoryHandle region) override;
    /// Unlocks all; what comes later is not locked. For a NIC that is closed.
    void end();

    /// Bytes of the lines that are locked; pages of two lines count twice.
    std::uint64_t bytes() const { return bytes_; }

private:
    struct Held : ListLink {
        memory::Line line;
        std::uint64_t bytes = 0;  ///< of the system's pages
    };
    using Lines = std::map<memory::LineName, Held>;

    bool lock(const memory::Line& line, std::string& why);
    bool release_one();
    void release(Held& held);

    LockedMemory& memory_;
    const Pin policy_;
    const std::uint64_t bytes_max_;
    const std::string nic_name_;
    memory::TranslationCache* table_ = nullptr;
    Lines lines_;          ///< those that are locked
    List<Held> in_table_;  ///< in order of loading
    List<Held> idle_;      ///< in order of leaving the table
    std::uint64_t bytes_ = 0;
    bool ended_ = false;
    bool told_ = false;  ///< of what pin=prefer could not do
};

/// What lock_max says, or else three quarters of RLIMIT_MEMLOCK, or 64 MiB where nothing limits.
std::uint64_t high_water_mark(const NicOptions& options, LockSystem& system);

}  // namespace via::agent
