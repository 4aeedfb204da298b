#include "device/datagram/length_search.hpp"

#include <algorithm>

#include "device/datagram/constants.hpp"

namespace via::device::datagram {

void LengthSearch::begin(std::uint32_t good, std::uint32_t limit, std::uint32_t first_try) {
    *this = {};
    good_ = std::min(good, limit);
    limit_ = limit;
    step_ = length_step_first;
    choose();
    if (first_try > good_ && first_try < limit_) candidate_ = first_try;
}

void LengthSearch::raise(std::uint32_t limit) {
    limit_ = std::max(good_, limit);
    ceiling_ = 0;
    step_ = length_step_first;
    choose();
}

void LengthSearch::choose() {
    losses_ = 0;
    candidate_ = 0;
    if (good_ >= limit_) return;
    if (ceiling_ == 0) {
        candidate_ = std::min(good_ + step_, limit_);
    } else if (ceiling_ - good_ > length_step_last) {
        candidate_ = good_ + (ceiling_ - good_) / 2;
    }
}

bool LengthSearch::arrived(std::uint32_t length) {
    if (length == under_way_) under_way_ = 0;
    if (length != candidate_ || candidate_ <= good_) return false;
    good_ = candidate_;
    step_ *= 2;
    choose();
    return true;
}

void LengthSearch::lost(std::uint32_t length) {
    if (length == under_way_) under_way_ = 0;
    if (length != candidate_ || ++losses_ < length_losses_max) return;
    ceiling_ = candidate_;
    choose();
}

}  // namespace via::device::datagram
