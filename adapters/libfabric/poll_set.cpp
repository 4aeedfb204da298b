// SPDX-License-Identifier: Apache-2.0
#include "poll_set.hpp"

#include <algorithm>

#include "completion_queue.hpp"
#include "counter.hpp"
#include "domain.hpp"
#include "rdm/queue.hpp"

namespace via::fabric {
namespace {

/// Calls `with` the object that libfabric's stands for; false: one that poll sets do not take.
template <class With>
bool visit(::fid& object, With&& with) {
    if (object.fclass == FI_CLASS_CNTR) {
        with(*static_cast<Counter*>(reinterpret_cast<fid_cntr*>(&object)));
    } else if (object.fclass != FI_CLASS_CQ) {
        return false;
    } else if (rdm::Queue* const queue = rdm::Queue::of(object)) {
        with(*queue);
    } else {
        with(*static_cast<CompletionQueue*>(reinterpret_cast<fid_cq*>(&object)));
    }
    return true;
}

PollSet& set_of(fid_poll* set) { return *static_cast<PollSet*>(set); }

}  // namespace

struct PollSetOperations {
    static int poll(fid_poll* set, void** contexts, int room) {
        return guarded([&] { return set_of(set).poll(contexts, room); });
    }
    static int add(fid_poll* set, fid* object, std::uint64_t flags) {
        if (flags != 0) return -FI_EBADFLAGS;
        return guarded([&] { return set_of(set).add(*object); });
    }
    static int remove(fid_poll* set, fid* object, std::uint64_t flags) {
        if (flags != 0) return -FI_EBADFLAGS;
        return set_of(set).remove(*object);
    }
    static int close(fid* set) {
        if (forked()) return -FI_EOPBADSTATE;
        delete &set_of(reinterpret_cast<fid_poll*>(set));
        return 0;
    }
};

namespace {

using Operations = PollSetOperations;
fi_ops object_operations = {sizeof(fi_ops), Operations::close, unsupported, unsupported,
                            unsupported,    unsupported,       unsupported};
fi_ops_poll set_operations = {sizeof(fi_ops_poll), Operations::poll, Operations::add,
                              Operations::remove};

}  // namespace

PollSet::PollSet(Domain& domain)
    : fid_poll{{FI_CLASS_POLL, nullptr, &object_operations}, &set_operations}, domain_(domain) {
    domain_.users.add();
}

PollSet::~PollSet() {
    for (::fid* object : objects_) visit(*object, [](auto& one) { one.users.remove(); });
    domain_.users.remove();
}

int PollSet::open(fid_domain* domain, fi_poll_attr* attributes, fid_poll** set) {
    return guarded([&] {
        if (attributes != nullptr && attributes->flags != 0) return -FI_EINVAL;
        *set = new PollSet(*static_cast<Domain*>(domain));
        return 0;
    });
}

int PollSet::add(::fid& object) {
    const std::lock_guard guard(lock_);
    objects_.reserve(objects_.size() + 1);
    // One that is in it twice has a place for each.
    if (!visit(object, [](auto& one) { one.users.add(); })) return -FI_EINVAL;
    objects_.push_back(&object);
    return 0;
}

int PollSet::remove(::fid& object) {
    const std::lock_guard guard(lock_);
    const auto found = std::ranges::find(objects_, &object);
    if (found == objects_.end()) return -FI_EINVAL;
    objects_.erase(found);
    visit(object, [](auto& one) { one.users.remove(); });
    return 0;
}

int PollSet::poll(void** contexts, int room) {
    const YieldsLater later(domain_.is_shared());
    const std::lock_guard guard(lock_);
    int found = 0;
    for (::fid* object : objects_) {
        bool any = false;
        visit(*object, [&](auto& one) { any = one.has_news(); });
        if (any && found < room) contexts[found++] = object->context;
    }
    return found;
}

}  // namespace via::fabric
