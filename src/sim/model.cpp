#include "sim/model.hpp"

#include <iterator>
#include <utility>

#include "base/assert.hpp"

namespace via::sim {

HostAddress address_of_host(std::uint32_t host, std::uint32_t interface) {
    HostAddress address;
    address.length = 6;
    const std::uint32_t last = host + 1;
    address.bytes = {10,
                     static_cast<std::uint8_t>(interface),
                     static_cast<std::uint8_t>(last >> 8),
                     static_cast<std::uint8_t>(last),
                     0x26,
                     0x0D};
    return address;
}

bool is_address_of_host(const HostAddress& address, std::uint32_t host) {
    for (std::uint32_t interface = 0; interface < networks_max; ++interface)
        if (address == address_of_host(host, interface)) return true;
    return false;
}

Vi* any_vi(Node& node) {
    return node.vis.empty() ? nullptr : node.vis[node.random.below(node.vis.size())];
}

std::uint64_t Work::length() const {
    std::uint64_t sum = 0;
    for (const Piece& piece : pieces) sum += piece.length;
    return sum;
}

bool Connection::has_credits() const {
    return ends[0]->wants_credits && ends[1]->wants_credits && ends[0]->vi->reliable();
}

// The rules of the interface, which a NIC keeps or the program ends.

bool Lines::load(const memory::Line& line) {
    VIA_ASSERT(nic_.memory().live(line.name.handle) && line.length != 0);
    if (!present_.empty() && random_.chance(5)) {
        const auto taken = std::next(present_.begin(),
                                     static_cast<std::ptrdiff_t>(random_.below(present_.size())));
        nic_.translations()->take_back(*taken);
        present_.erase(taken);
    }
    VIA_ASSERT(present_.insert(line.name).second);
    return true;
}

void Lines::evicted(const memory::LineName& line) { VIA_ASSERT(present_.erase(line) == 1); }

void Lines::forget(memory::MemoryHandle handle) {
    std::erase_if(present_, [&](const memory::LineName& line) { return line.handle == handle; });
}

Node::Node(NodeNumber its_number, std::uint32_t its_host, const Parameters& parameters,
           std::uint64_t seed, const device::sim::VirtualClock& its_clock)
    : number(its_number),
      host(its_host),
      clock(its_clock),
      nic("sim", parameters.limits, counters, *this, its_number * 2),
      lines(nic, seed),
      arena(parameters.arena_length),
      random(seed) {
    if (parameters.table.entries != 0) nic.cache_translations(parameters.table, lines);
}

Vi& Model::add_vi(Node& node, engine::Vi& vi, const engine::ViAttributes& attributes) {
    Vi& record = vis_.emplace_back();
    record.number = static_cast<ViNumber>(vis_.size() - 1);
    record.node = &node;
    record.vi = &vi;
    record.generation = vi.generation.load();
    record.attributes = attributes;
    node.vis.push_back(&record);
    return record;
}

Vi& Model::add_holder(Node& node, const engine::ViAttributes& attributes) {
    Vi& record = vis_.emplace_back();
    record.number = static_cast<ViNumber>(vis_.size() - 1);
    record.node = &node;
    record.attributes = attributes;
    return record;
}

Work& Model::add_work(Vi& vi, WorkKind kind) {
    Work& work = works_.emplace_back();
    work.number = static_cast<WorkNumber>(works_.size() - 1);
    work.vi = &vi;
    work.kind = kind;
    return work;
}

Connection& Model::add_connection(Vi& asked, Vi& accepted) {
    Connection& connection = connections_.emplace_back();
    connection.number = static_cast<std::uint32_t>(connections_.size() - 1);
    connection.ends[0] = &asked;
    connection.ends[1] = &accepted;
    accepted_[{asked.number, asked.attempt}] = &connection;
    return connection;
}

Connection* Model::met(Vi& vi) {
    if (vi.partner == nullptr || vi.partner_since != vi.attempt) return nullptr;
    // The other one may have begun something else since.
    const std::uint32_t present = std::exchange(vi.partner->attempt, vi.partner_attempt);
    Connection& connection = add_connection(*vi.partner, vi);
    vi.partner->attempt = present;
    return &connection;
}

Connection* Model::accepted(const Vi& vi) const {
    const auto found = accepted_.find({vi.number, vi.attempt});
    return found == accepted_.end() ? nullptr : found->second;
}

}  // namespace via::sim
