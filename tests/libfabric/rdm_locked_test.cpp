// SPDX-License-Identifier: Apache-2.0
// What of a short tagged message inside a host waits for all stores before it, where the program
// says that it needs no lock of the provider's: nothing.
#include "rdm_scene.hpp"
#include "stepped_parts.hpp"

namespace rdm_locked_test {
namespace {

using namespace scene;

/// What a message takes, one after the other. Of each message one part is stepped through.
enum class Part : std::uint8_t { receive, send, read, none };

class Message {
public:
    Message(Couple& couple, Part stepped) : couple_(couple), stepped_(stepped) {}

    /// Passes one, and looks at its part.
    Steps pass() {
        stepped_.carry_out(Part::receive, [&] {
            return fi_trecv(couple_.b.endpoint.get(), &in_, sizeof in_, nullptr, FI_ADDR_UNSPEC, 1,
                            0, word(1));
        });
        const auto send = [&] {
            return fi_tinject(couple_.a.endpoint.get(), &out_, sizeof out_, couple_.to_b, 1);
        };
        if (stepped_.carry_out(Part::send, send) != 0) until_taken(couple_.a, &couple_.b, send);
        fi_cq_tagged_entry entry;
        const auto read = [&] { return fi_cq_read(couple_.b.queue.get(), &entry, 1); };
        if (stepped_.carry_out(Part::read, read) != 1) couple_.b.completion(&couple_.a);
        return stepped_.found();
    }

private:
    Couple& couple_;
    SteppedPart<Part> stepped_;
    std::uint64_t out_ = 1;
    std::uint64_t in_ = 0;
};

TEST(Locked, NothingOfAMessageByStoresWhereTheProgramHasOneThread) {
    if (!has_membarrier()) GTEST_SKIP() << "the kernel has no membarrier";
    const Info wanted = datagram_hints();
    wanted->domain_attr->threading = FI_THREAD_DOMAIN;
    Couple couple(wanted.get());
    expect_waits_at_most(0, {Part::receive, Part::send, Part::read},
                         [&](Part part) { return Message(couple, part).pass(); });
}

}  // namespace
}  // namespace rdm_locked_test
