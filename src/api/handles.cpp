#include "api/handles.hpp"

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <mutex>

#include "agent/process.hpp"

namespace via::api {

Atomic<OpenNic*> open_nics[nics_max];

namespace {

struct Owned {
    OpenNic open;
    std::unique_ptr<agent::Agent> agent;
};

/// NICs that were closed lately stay in memory: a call of another thread that raced with the close
/// finds a NIC without devices, not freed memory.
constexpr std::size_t closed_kept = 16;

struct Table {
    SpinLock lock;  // for a few instructions: nobody blocks holding it
    std::unique_ptr<Owned> owned[nics_max];
    std::deque<std::unique_ptr<Owned>> closed;
    std::uint32_t next = 0;
};

/// Never destroyed: threads of the program may call until the very end.
Table& table() {
    static Table& instance = *new Table;
    return instance;
}

bool close_slot(std::uint32_t index, std::uint64_t generation, agent::Handler& handler) {
    std::unique_ptr<Owned> owned;
    {
        std::lock_guard guard(table().lock);
        std::unique_ptr<Owned>& slot = table().owned[index];
        if (!slot || slot->open.generation != generation) return false;
        open_nics[index].store(nullptr, std::memory_order_release);
        owned = std::move(slot);
    }
    owned->agent->close();
    // While it is ours: once it is among the closed ones, others that close NICs may destroy it.
    handler = owned->agent->set_error_handler({});
    std::unique_ptr<Owned> oldest;  // destroyed without the lock
    std::lock_guard guard(table().lock);
    auto& closed = table().closed;
    closed.push_back(std::move(owned));
    if (closed.size() <= closed_kept) return true;
    // A handler that closed its NIC may still run there.
    const auto at = std::ranges::find_if(closed, [](auto& one) { return one->agent->is_over(); });
    if (at == closed.end()) return true;
    oldest = std::move(*at);
    closed.erase(at);
    return true;
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
    static Atomic<std::uint64_t> opened{0};
    return opened.fetch_add(1) + 1;
}

OpenNic* enter_nic(std::unique_ptr<agent::Agent> agent, std::uint64_t generation) {
    static const int at_exit = std::atexit(leave_all);
    if (at_exit != 0) agent::log(1, "cannot close NICs at exit: the next one to open cleans up");
    auto owned = std::make_unique<Owned>();
    std::lock_guard guard(table().lock);
    for (std::uint32_t tried = 0; tried < nics_max; ++tried) {
        const std::uint32_t index = table().next;
        table().next = (index + 1) % nics_max;
        if (table().owned[index]) continue;
        owned->agent = std::move(agent);
        owned->open = {owned->agent.get(), &owned->agent->nic(), index, generation};
        table().owned[index] = std::move(owned);
        open_nics[index].store(&table().owned[index]->open, std::memory_order_release);
        return &table().owned[index]->open;
    }
    return nullptr;
}

bool close_nic(const void* handle, agent::Handler& handler) {
    return close_slot(nic_index(handle), name_of(handle), handler);
}

}  // namespace via::api
