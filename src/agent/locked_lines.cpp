#include "agent/locked_lines.hpp"

#include <inttypes.h>

#include <new>

#include "agent/process.hpp"

namespace via::agent {

bool LockedLines::load(const memory::Line& line) {
    // All memory of the process at once (ViaRegisterAll) is not locked, and has holes.
    if (policy_ == Pin::never || ended_ || line.region.begin == 0) return true;
    if (const auto found = lines_.find(line.name); found != lines_.end()) {
        List<Held>::remove(found->second);
        in_table_.push_back(found->second);
        return true;
    }
    std::string why;
    if (lock(line, why)) return true;
    const bool may_fail = policy_ == Pin::prefer;
    if (may_fail && told_) return true;
    told_ = true;
    log(1,
        may_fail ? "NIC %s: %" PRIu64 " bytes at 0x%" PRIx64
                   " are not locked while they are used, and may be swapped out: %s; this is said "
                   "once (pin=never says nothing)"
                 : "NIC %s: %" PRIu64 " bytes at 0x%" PRIx64
                   " cannot be used with pin=require, and a transfer fails: %s",
        nic_name_.c_str(), line.length, line.begin, why.c_str());
    return may_fail;
}

bool LockedLines::lock(const memory::Line& line, std::string& why) {
    const std::uint64_t bytes = memory_.page_bytes(line.begin, line.length);
    if (bytes > bytes_max_) {
        why = "lock_max is " + std::to_string(bytes_max_) + " bytes";
        return false;
    }
    while (bytes_ + bytes > bytes_max_) release_one();
    try {
        const auto made = lines_.try_emplace(line.name).first;
        for (;;) {
            const auto locked = memory_.lock(line.begin, line.length);
            if (locked) break;
            // Somebody else's locks count as well.
            if (memory_.is_short(locked.error(), line.begin, line.length) && release_one())
                continue;
            why = memory_.why(locked.error(), line.begin, line.length);
            lines_.erase(made);
            return false;
        }
        Held& held = made->second;
        held.line = line;
        held.bytes = bytes;
        in_table_.push_back(held);
        bytes_ += bytes;
        return true;
    } catch (const std::bad_alloc&) {
        why = "out of memory";
        return false;
    }
}

/// Unlocks the line that was not used for the longest time. False: none is locked.
bool LockedLines::release_one() {
    if (Held* held = idle_.front()) {
        release(*held);
        return true;
    }
    Held* held = in_table_.front();
    if (held == nullptr) return false;
    table_->take_back(held->line.name);
    release(*held);
    return true;
}

void LockedLines::release(Held& held) {
    List<Held>::remove(held);
    memory_.unlock(held.line.begin, held.line.length);
    bytes_ -= held.bytes;
    lines_.erase(held.line.name);
}

void LockedLines::evicted(const memory::LineName& line) {
    const auto found = lines_.find(line);
    if (found == lines_.end()) return;  // it could not be locked
    List<Held>::remove(found->second);
    idle_.push_back(found->second);
}

void LockedLines::forget(memory::MemoryHandle region) {
    auto at = lines_.lower_bound({region, 0});
    while (at != lines_.end() && at->first.handle == region) release((at++)->second);
}

void LockedLines::end() {
    ended_ = true;
    while (!lines_.empty()) release(lines_.begin()->second);
}

std::uint64_t high_water_mark(const NicOptions& options, LockSystem& system) {
    constexpr std::uint64_t usual = 64ULL << 20;
    if (options.lock_max != 0) return options.lock_max;
    const std::uint64_t limit = system.locked_bytes_max();
    if (limit == LockSystem::unlimited || system.has_lock_right()) return usual;
    return limit / 4 * 3;
}

}  // namespace via::agent
