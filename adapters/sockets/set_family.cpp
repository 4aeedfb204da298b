#include "set_family.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include "arena.hpp"

namespace via::sockets {

namespace {

constexpr std::uint64_t low = 0xFFFFFFFF;

/// Behind its number comes when it began, 0 if that cannot be told: numbers are used again.
std::uint64_t this_process() {
    const auto process = static_cast<std::uint32_t>(getpid());
    return std::uint64_t{process} << 32 | (start_of(process).value_or(0) & low);
}

}  // namespace

bool SetFamily::begin(bool helped) {
    if (page_ == nullptr) {
        void* const made =
            mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (made == MAP_FAILED) return false;
        page_ = {static_cast<Page*>(made), [](Page* page) { munmap(page, sizeof(Page)); }};
        page_->owner.store(this_process());
    }
    if (helped) has_helper();
    return true;
}

void SetFamily::leave() {
    if (page_ != nullptr) page_->owner.store(0);
}

bool SetFamily::take_over(bool helped) {
    std::uint64_t owner = page_->owner.load();
    if (!is_left() || is_contested() ||
        !page_->owner.compare_exchange_strong(owner, this_process()))
        return false;
    page_->helped.store(helped);
    return true;
}

bool SetFamily::is_left() const {
    const std::uint64_t owner = page_->owner.load();
    if (owner == 0) return true;
    const auto began = start_of(static_cast<std::uint32_t>(owner >> 32));
    if (!began) return false;  // it cannot be told
    return *began == 0 || ((owner & low) != 0 && (*began & low) != (owner & low));
}

}  // namespace via::sockets
