#include "engine/vi_table.hpp"

#include <new>

#include "base/assert.hpp"

namespace via::engine {

ViTable::ViTable(std::uint32_t vis_max, std::uint32_t first_generation)
    : vis_max_(vis_max),
      first_generation_(first_generation & ~1U),
      chunks_(std::make_unique<Atomic<Vi*>[]>((vis_max + vis_per_chunk - 1) / vis_per_chunk)) {
    VIA_ASSERT(vis_max <= 1U << 16);
}

ViTable::~ViTable() {
    for (std::uint32_t at = 0; at < made_; at += vis_per_chunk)
        delete[] chunks_[at / vis_per_chunk].load(std::memory_order_relaxed);
}

Vi* ViTable::next_free() {
    if (free_.empty()) {
        if (made_ == vis_max_) return nullptr;
        free_.reserve(made_ + vis_per_chunk);  // a VI that ends needs no memory
        Vi* chunk = new (std::nothrow) Vi[vis_per_chunk];
        if (chunk == nullptr) return nullptr;
        chunks_[made_ / vis_per_chunk].store(chunk, std::memory_order_release);
        for (std::uint32_t n = vis_per_chunk; n-- != 0;) {
            chunk[n].index = made_ + n;
            chunk[n].generation.store(first_generation_, std::memory_order_relaxed);
            free_.push_back(made_ + n);
        }
        made_ += vis_per_chunk;
    }
    return at(free_.back());
}

void ViTable::open(Vi& vi) {
    VIA_ASSERT(!free_.empty() && free_.back() == vi.index && !exists(vi));
    free_.pop_back();
    vi.generation.store(vi.generation.load(std::memory_order_relaxed) + 1,
                        std::memory_order_release);
    ++count_;
}

void ViTable::close(Vi& vi) {
    VIA_ASSERT(exists(vi));
    vi.generation.store(vi.generation.load(std::memory_order_relaxed) + 1,
                        std::memory_order_release);
    --count_;
    free_.insert(free_.begin(), vi.index);  // last reused: stale handles stay stale longest
}

}  // namespace via::engine
