#include "memory.hpp"

#include <algorithm>
#include <cstring>

namespace via::model {

namespace {

bool acquires(std::memory_order order) {
    return order == std::memory_order_acquire || order == std::memory_order_consume ||
           order == std::memory_order_acq_rel || order == std::memory_order_seq_cst;
}

bool releases(std::memory_order order) {
    return order == std::memory_order_release || order == std::memory_order_acq_rel ||
           order == std::memory_order_seq_cst;
}

}  // namespace

void SharedMemory::reset(Memory model, unsigned threads) {
    model_ = model;
    objects_ = 0;
    for (Variable& variable : variables_) {
        variable.at = nullptr;
        variable.values.clear();
        variable.order.clear();
        variable.place.clear();
    }
    for (Thread& thread : threads_) {
        thread.now = thread.acquired = thread.released = thread.lit = Knowledge{};
        thread.buffer.clear();
        thread.lit_stores = 0;
    }
    for (unsigned i = 0; i < threads; ++i) threads_[i].now.sync.at[i] = 1;
    slots_.clear();
    sc_ = View{};
}

void SharedMemory::add(unsigned object, void* at, std::size_t bytes) {
    if (variables_.size() <= object) variables_.resize(object + 1);
    objects_ = std::max(objects_, object + 1);
    Variable& variable = variables_[object];
    variable.at = at;
    variable.bytes = bytes;
    Value initial;
    std::memcpy(&initial.bits, at, bytes);  // little-endian
    variable.values.push_back(initial);
    variable.order.push_back(0);
    variable.place.push_back(0);
}

void SharedMemory::retire(unsigned object) { variables_[object].at = nullptr; }

Place SharedMemory::last(unsigned object) const {
    return static_cast<Place>(variables_[object].order.size() - 1);
}

std::uint64_t SharedMemory::value(unsigned object, Place place) const {
    const Variable& variable = variables_[object];
    return variable.values[variable.order[place]].bits;
}

std::uint64_t SharedMemory::newest(unsigned object) const { return value(object, last(object)); }

unsigned SharedMemory::foreign(unsigned thread, unsigned object, Place place) const {
    const Variable& variable = variables_[object];
    unsigned count = 0;
    for (Place i = 0; i <= place; ++i)
        if (variable.values[variable.order[i]].thread != thread) ++count;
    return count;
}

// The oldest place that the thread may still read, replace or follow.
Place SharedMemory::floor(const Reach& reach) const {
    const Variable& variable = variables_[reach.object];
    if (model_ != Memory::weak) return last(reach.object);
    Place place = variable.place[threads_[reach.thread].now.view.id[reach.object]];
    if (reach.sc) place = std::max(place, variable.place[sc_.id[reach.object]]);
    if (reach.past != nullptr) {
        // If the step does not depend on the variable's latest store yet, then what it could do
        // before that store's place it also can in the interleaving in which it comes first.
        const Stamp latest = variable.values.back().stamp;
        if (!reach.past->includes(latest.process, latest.count))
            place = std::max(place, variable.place.back());
    }
    return place;
}

void SharedMemory::loads(const Reach& reach, std::vector<Place>& places) const {
    places.clear();
    const Place oldest = floor(reach);
    for (int i = last(reach.object); i >= oldest; --i) places.push_back(static_cast<Place>(i));
}

void SharedMemory::updates(const Reach& reach, std::vector<Place>& places) const {
    const Variable& variable = variables_[reach.object];
    places.clear();
    const Place oldest = floor(reach);
    const Place end = last(reach.object);
    for (int i = end; i >= oldest; --i) {
        const auto next = static_cast<std::size_t>(i) + 1;
        if (i == end || !variable.values[variable.order[next]].update)
            places.push_back(static_cast<Place>(i));
    }
}

void SharedMemory::stores(const Reach& reach, std::vector<Place>& places) const {
    updates(reach, places);
}

void SharedMemory::compares(const Reach& reach, std::uint64_t expected,
                            std::vector<Place>& places) const {
    const Variable& variable = variables_[reach.object];
    places.clear();
    const Place oldest = floor(reach);
    const Place end = last(reach.object);
    for (int i = end; i >= oldest; --i) {
        const auto next = static_cast<std::size_t>(i) + 1;
        const bool replaceable = i == end || !variable.values[variable.order[next]].update;
        const bool equal =
            variable.values[variable.order[static_cast<std::size_t>(i)]].bits == expected;
        if (replaceable || !equal) places.push_back(static_cast<Place>(i));
    }
}

// The newer of the two, variable by variable.
void SharedMemory::join(View& view, const View& other) const {
    for (unsigned i = 0; i < objects_; ++i) {
        if (view.id[i] == other.id[i]) continue;
        const std::vector<Place>& place = variables_[i].place;
        if (place[other.id[i]] > place[view.id[i]]) view.id[i] = other.id[i];
    }
}

void SharedMemory::join(Knowledge& knowledge, const Knowledge& other) const {
    join(knowledge.view, other.view);
    knowledge.sync.join(other.sync);
}

std::uint64_t SharedMemory::read(unsigned thread, unsigned object, Place place,
                                 std::memory_order order) {
    const Variable& variable = variables_[object];
    const Id id = variable.order[place];
    const Value& value = variable.values[id];
    Thread& reader = threads_[thread];
    if (place > variable.place[reader.now.view.id[object]]) reader.now.view.id[object] = id;
    join(acquires(order) ? reader.now : reader.acquired, value.message);
    return value.bits;
}

// What a store by the thread passes on to those who acquire it.
SharedMemory::Knowledge SharedMemory::message(unsigned thread, std::memory_order order) const {
    return releases(order) ? threads_[thread].now : threads_[thread].released;
}

void SharedMemory::insert(unsigned thread, unsigned object, Place after, Value value, bool sc) {
    Variable& variable = variables_[object];
    const auto id = static_cast<Id>(variable.values.size());
    value.message.view.id[object] = id;
    variable.values.push_back(value);
    variable.order.insert(variable.order.begin() + after + 1, id);
    variable.place.resize(variable.values.size());
    for (std::size_t i = after + 1u; i < variable.order.size(); ++i)
        variable.place[variable.order[i]] = static_cast<Place>(i);
    Id& seen = threads_[thread].now.view.id[object];
    if (variable.place[id] > variable.place[seen]) seen = id;
    if (sc && variable.place[id] > variable.place[sc_.id[object]]) sc_.id[object] = id;
    const std::uint64_t bits = newest(object);
    std::memcpy(variable.at, &bits, variable.bytes);
}

void SharedMemory::store(unsigned thread, unsigned object, Place place, std::uint64_t bits,
                         std::memory_order order, Stamp stamp) {
    insert(thread, object, place, Value{bits, message(thread, order), stamp, thread, false},
           order == std::memory_order_seq_cst);
}

void SharedMemory::update(unsigned thread, unsigned object, Place place, std::uint64_t bits,
                          std::memory_order order, Stamp stamp) {
    Value value{bits, message(thread, order), stamp, thread, true};
    const Variable& variable = variables_[object];
    // Read-modify-writes continue the release sequence of what they replace.
    join(value.message, variable.values[variable.order[place]].message);
    insert(thread, object, place, value, order == std::memory_order_seq_cst);
}

void SharedMemory::fence(unsigned thread, std::memory_order order) {
    Thread& own = threads_[thread];
    if (acquires(order)) join(own.now, own.acquired);
    if (order == std::memory_order_seq_cst && model_ == Memory::weak) {
        // Orders what threads see; makes no happens-before by itself, hence views only.
        join(sc_, own.now.view);
        own.now.view = sc_;
    }
    if (releases(order)) own.released = own.now;
    if (order == std::memory_order_seq_cst) light_fence(thread);
}

void SharedMemory::light_fence(unsigned thread) {
    Thread& own = threads_[thread];
    own.lit = own.now;
    own.lit_stores = own.buffer.size();
}

void SharedMemory::heavy_fence(unsigned thread) {
    Thread& own = threads_[thread];
    join(own.now, own.acquired);
    if (model_ == Memory::weak) {
        join(sc_, own.lit.view);
        join(own.now.view, sc_);
    }
    join(own.released, own.lit);
}

void SharedMemory::give(unsigned thread, unsigned slot) {
    if (slots_.size() <= slot) slots_.resize(slot + 1);
    join(slots_[slot], threads_[thread].now);
}

void SharedMemory::take(unsigned thread, unsigned slot) {
    if (slots_.size() <= slot) slots_.resize(slot + 1);
    join(threads_[thread].now, slots_[slot]);
}

void SharedMemory::show(unsigned from, unsigned to) {
    join(threads_[to].now.view, threads_[from].now.view);
}

void SharedMemory::tick(unsigned thread) { ++threads_[thread].now.sync.at[thread]; }

void SharedMemory::buffer(unsigned thread, unsigned object, std::uint64_t bits,
                          std::memory_order order, const StepClock& clock) {
    threads_[thread].buffer.push_back({object, bits, message(thread, order), clock});
}

const std::uint64_t* SharedMemory::forwarded(unsigned thread, unsigned object) const {
    const std::vector<Buffered>& buffer = threads_[thread].buffer;
    for (auto i = buffer.rbegin(); i != buffer.rend(); ++i)
        if (i->object == object) return &i->bits;
    return nullptr;
}

void SharedMemory::flush(unsigned thread, Stamp stamp) {
    std::vector<Buffered>& buffer = threads_[thread].buffer;
    const Buffered oldest = buffer.front();
    if (threads_[thread].lit_stores != 0) --threads_[thread].lit_stores;
    buffer.erase(buffer.begin());
    insert(thread, oldest.object, last(oldest.object),
           Value{oldest.bits, oldest.message, stamp, thread, false}, false);
}

}  // namespace via::model
