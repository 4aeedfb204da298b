#include "api/handles.hpp"

#include <cstdlib>
#include <memory>
#include <mutex>
#include <utility>

#include "agent/process.hpp"

namespace via::api {

Atomic<OpenNic*> open_nics[nics_max];

namespace {

struct Owned {
    OpenNic open;
    std::unique_ptr<agent::Agent> agent;
    Owned* next = nullptr;  ///< of those that are closed
};

/// NICs that were closed lately stay in memory: a call of another thread that raced with the close
/// finds a NIC without devices, not freed memory.
constexpr std::size_t closed_kept = 16;

/// Never destroyed: threads of the program may call until the very end.
struct Table {
    SpinLock lock;  // for a few instructions: nobody blocks holding it
    Owned* owned[nics_max] = {};
    Owned* closed = nullptr;  ///< the last one first
    std::size_t closed_count = 0;
    std::uint32_t next = 0;
    bool inherited[nics_max] = {};  ///< in a forked child: the places of its parent's NICs
    Owned* closed_by_parent = nullptr;
};
constinit Table table;

/// Puts a NIC among the closed ones, and gives back the oldest when they are too many.
std::unique_ptr<Owned> keep_closed(Owned* owned) {
    std::lock_guard guard(table.lock);
    owned->next = table.closed;
    table.closed = owned;
    if (++table.closed_count <= closed_kept) return {};
    // A handler that closed its NIC may still run there.
    Owned** oldest = nullptr;
    for (Owned** at = &table.closed; *at != nullptr; at = &(*at)->next)
        if ((*at)->agent->is_over()) oldest = at;
    if (oldest == nullptr) return {};
    --table.closed_count;
    return std::unique_ptr<Owned>(std::exchange(*oldest, (*oldest)->next));
}

Closed close_slot(std::uint32_t index, std::uint64_t generation, agent::Handler& handler) {
    Owned* owned = nullptr;
    {
        std::lock_guard guard(table.lock);
        Owned*& slot = table.owned[index];
        if (slot == nullptr || slot->open.generation != generation) return Closed::already;
        open_nics[index].store(nullptr, std::memory_order_release);
        owned = std::exchange(slot, nullptr);
    }
    const bool in_order = owned->agent->close();
    // While it is ours: once it is among the closed ones, others that close NICs may destroy it.
    handler = owned->agent->set_error_handler({});
    const std::unique_ptr<Owned> oldest = keep_closed(owned);  // destroyed without the lock
    return in_order ? Closed::well : Closed::out_of_order;
}

/// At exit the peers hear of it, and the directory is left clean. Not in a forked child. Handles
/// stay as they are: other threads may be in the midst of a call. So may we, where the handler of a
/// signal exits: what cannot be left in order is left as by who is killed.
void leave_all() {
    if (agent::forked()) return;
    bool in_order = true;
    for (Atomic<OpenNic*>& slot : open_nics)
        if (OpenNic* open = slot.load(std::memory_order_acquire))
            in_order = open->agent->leave() && in_order;
    if (!in_order) agent::give_up_process();
}

}  // namespace

std::uint64_t next_generation() {
    static constinit Atomic<std::uint64_t> opened{0};
    return opened.fetch_add(1) + 1;
}

bool is_inherited(const void* handle) {
    return bits_of(handle) >> 60 != 0 && table.inherited[nic_index(handle)];
}

void begin_in_child() {
    std::construct_at(&table.lock);
    for (std::uint32_t index = 0; index < nics_max; ++index) {
        // They keep their places: nobody else's handles look like theirs.
        table.inherited[index] = table.owned[index] != nullptr;
        open_nics[index].store(nullptr, std::memory_order_relaxed);
    }
    while (table.closed != nullptr) {
        Owned* const owned = std::exchange(table.closed, table.closed->next);
        owned->next = std::exchange(table.closed_by_parent, owned);
    }
    table.closed_count = 0;
}

OpenNic* enter_nic(std::unique_ptr<agent::Agent> agent, std::uint64_t generation) {
    static constinit Atomic<bool> leaves_at_exit{false};
    if (!leaves_at_exit.exchange(true) && std::atexit(leave_all) != 0)
        agent::log(1, "cannot close NICs at exit: the next one to open cleans up");
    auto owned = std::make_unique<Owned>();
    std::lock_guard guard(table.lock);
    for (std::uint32_t tried = 0; tried < nics_max; ++tried) {
        const std::uint32_t index = table.next;
        table.next = (index + 1) % nics_max;
        if (table.owned[index] != nullptr) continue;
        owned->agent = std::move(agent);
        owned->open = {owned->agent.get(), &owned->agent->nic(), index, generation};
        table.owned[index] = owned.release();
        OpenNic* const open = &table.owned[index]->open;
        open_nics[index].store(open, std::memory_order_release);
        return open;
    }
    return nullptr;
}

Closed close_nic(const void* handle, agent::Handler& handler) {
    return close_slot(nic_index(handle), name_of(handle), handler);
}

}  // namespace via::api
