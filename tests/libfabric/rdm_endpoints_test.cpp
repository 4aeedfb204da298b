// SPDX-License-Identifier: Apache-2.0
// Several endpoints for datagrams in one domain, with one completion queue and one address vector.
#include <map>

#include "rdm_scene.hpp"

using namespace scene;

namespace rdm_endpoints_test {
namespace {

constexpr std::size_t endpoints_max = 4;

/// A party with further endpoints beside its own, which use its queue and its address vector.
struct Crew {
    Crew() : names{party.name} {
        for (std::size_t n = 1; n < endpoints_max; ++n) {
            fid_ep* fresh = nullptr;
            EXPECT_EQ(fi_endpoint(party.domain.get(), party.info.get(), &fresh, nullptr), 0);
            more[n].reset(fresh);
            EXPECT_EQ(fi_ep_bind(fresh, &party.addresses->fid, 0), 0);
            EXPECT_EQ(fi_ep_bind(fresh, &party.queue->fid, FI_TRANSMIT | FI_RECV), 0);
            EXPECT_EQ(fi_enable(fresh), 0);
            std::size_t length = sizeof names[n];
            EXPECT_EQ(fi_getname(&fresh->fid, &names[n], &length), 0);
        }
    }
    fid_ep* at(std::size_t n) { return n == 0 ? party.endpoint.get() : more[n].get(); }
    using Numbers = std::array<fi_addr_t, endpoints_max>;
    /// Of somebody's endpoints, here.
    const Numbers& knows(const Crew& other) {
        const auto [at, is_new] = known_.try_emplace(&other);
        for (std::size_t n = 0; is_new && n < endpoints_max; ++n)
            at->second[n] = party.knows(ntohs(other.names[n].sin_port));
        return at->second;
    }

    Party party;
    std::array<Owned<fid_ep>, endpoints_max> more;
    std::array<sockaddr_in, endpoints_max> names{};

private:
    std::map<const Crew*, Numbers> known_;
};

/// Each endpoint of `from` from `first` on sends to each one of `to`. All use one tag: whose
/// message it is only the endpoints tell.
void all_to_all(Crew& from, Crew& to, std::size_t length, std::size_t first = 0) {
    const Crew::Numbers& targets = from.knows(to);
    const Crew::Numbers& sources = to.knows(from);
    std::vector<std::vector<std::byte>> got;
    std::vector<std::vector<std::byte>> sent;
    for (std::size_t pair = 0; pair < endpoints_max * endpoints_max; ++pair) {
        got.emplace_back(length);
        sent.push_back(pattern(length, static_cast<unsigned>(pair)));
    }
    std::size_t expected = 0;
    for (std::size_t one = first; one < endpoints_max; ++one)
        for (std::size_t other = first; other < endpoints_max; ++other) {
            const std::size_t pair = one * endpoints_max + other;
            EXPECT_EQ(fi_trecv(to.at(other), got[pair].data(), length, nullptr, sources[one], 7, 0,
                               word(pair)),
                      0);
            until_taken(from.party, &to.party, [&] {
                return fi_tsend(from.at(one), sent[pair].data(), length, nullptr, targets[other], 7,
                                word(1000 + pair));
            });
            ++expected;
        }
    std::vector<bool> received(got.size());
    std::vector<bool> done(got.size());
    const auto take = [&](Party& party, Party& other) {
        fi_addr_t source = FI_ADDR_UNSPEC;
        const auto context =
            reinterpret_cast<std::uintptr_t>(party.completion(&other, &source).op_context);
        const bool is_send = context >= 1000;
        const std::size_t pair = is_send ? context - 1000 : context;
        ASSERT_LT(pair, got.size());
        EXPECT_FALSE(is_send ? done[pair] : received[pair]) << "told twice";
        (is_send ? done : received)[pair] = true;
        if (!is_send) {
            EXPECT_EQ(source, sources[pair / endpoints_max]);
        }
    };
    for (std::size_t n = 0; n < expected; ++n) {
        take(from.party, to.party);
        take(to.party, from.party);
    }
    for (std::size_t one = first; one < endpoints_max; ++one)
        for (std::size_t other = first; other < endpoints_max; ++other) {
            const std::size_t pair = one * endpoints_max + other;
            EXPECT_TRUE(received[pair] && done[pair]);
            EXPECT_TRUE(got[pair] == sent[pair]) << one << " to " << other;
        }
}

TEST(SeveralEndpoints, ShareOneQueueAndOneAddressVector) {
    Crew a;
    Crew b;
    for (const std::size_t length : {8U, 4'096U, 100'000U}) {
        all_to_all(a, b, length);
        all_to_all(b, a, length);
    }
}

TEST(SeveralEndpoints, OfOneDomainTalkToEachOther) {
    Crew crew;
    all_to_all(crew, crew, 64);
    all_to_all(crew, crew, 50'000);
}

TEST(SeveralEndpoints, GoOnWhenOneOfThemIsClosed) {
    Crew a;
    Crew b;
    all_to_all(a, b, 64);
    b.party.endpoint.reset();  // the first: the others' queue and addresses stay
    all_to_all(a, b, 64, 1);
    all_to_all(b, a, 64, 1);
}

}  // namespace
}  // namespace rdm_endpoints_test
