// How long datagrams of a path may be: longer ones are tried, one at a time.
#pragma once

#include <cstdint>

namespace via::device::datagram {

class LengthSearch {
public:
    /// `good` is known to go through, or as good as; `limit` is what both ends take.
    void begin(std::uint32_t good, std::uint32_t limit, std::uint32_t first_try = 0);
    /// Longer ones may go through by now: looks again, up to `limit`.
    void raise(std::uint32_t limit);
    std::uint32_t good() const { return good_; }
    std::uint32_t limit() const { return limit_; }
    /// Length of the next probe; 0: none is to be sent.
    std::uint32_t wanted() const { return under_way_ != 0 ? 0 : candidate_; }
    void sent() { under_way_ = candidate_; }
    /// What came of a probe of that length, perhaps one from before another search began. True:
    /// `good` has grown.
    bool arrived(std::uint32_t length);
    void lost(std::uint32_t length);

private:
    void choose();

    std::uint32_t good_ = 0;
    std::uint32_t limit_ = 0;
    std::uint32_t ceiling_ = 0;  ///< the shortest that did not go through; 0: none
    std::uint32_t step_ = 0;
    std::uint32_t candidate_ = 0;
    std::uint32_t losses_ = 0;
    std::uint32_t under_way_ = 0;  ///< its length; 0: none is
};

}  // namespace via::device::datagram
