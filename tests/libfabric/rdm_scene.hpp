// SPDX-License-Identifier: Apache-2.0
// Endpoints for datagrams that know each other, with a NIC each.
#pragma once

#include <rdma/fi_tagged.h>
#include <sched.h>

#include <chrono>

#include "scene.hpp"

namespace scene {

/// What Open MPI asks for.
Info datagram_hints();

/// A fabric of one NIC with one endpoint, its completion queue and its address vector.
struct Party {
    explicit Party(const fi_info* wanted = nullptr, std::uint64_t queue_flags = 0,
                   fi_wait_obj wait_object = FI_WAIT_NONE, std::uint64_t counted = 0);

    /// The number of the other one here.
    fi_addr_t knows(const Party& other);
    /// Of whoever has that port on this host.
    fi_addr_t knows(std::uint16_t port);

    void post(void* buffer, std::size_t length, std::uint64_t tag, std::uintptr_t context,
              fi_addr_t from = FI_ADDR_UNSPEC, std::uint64_t ignore = 0);
    /// Again and again until it is taken; `other` is the peer's side, which must read as well.
    void send(fi_addr_t to, const void* bytes, std::size_t length, std::uint64_t tag,
              std::uintptr_t context, Party* other = nullptr);
    void inject(fi_addr_t to, const void* bytes, std::size_t length, std::uint64_t tag,
                std::uint64_t data, Party* other = nullptr);
    Owned<fid_mr> memory(const void* begin, std::size_t length, std::uint64_t access);
    /// FI_PEEK and more with this tag.
    void search(std::uint64_t tag, std::uintptr_t context, std::uint64_t flags,
                fi_addr_t from = FI_ADDR_UNSPEC);

    /// A completion, waited for; an error fails the test.
    fi_cq_tagged_entry completion(Party* other = nullptr, fi_addr_t* from = nullptr);
    /// An error, waited for.
    fi_cq_err_entry failure(Party* other = nullptr);
    /// Nothing completes, though it is read.
    void expect_nothing();
    void read() { fi_cq_read(queue.get(), nullptr, 0); }

    Info info;
    Owned<fid_fabric> fabric;
    Owned<fid_domain> domain;
    Owned<fid_cq> queue;
    Owned<fid_av> addresses;
    Owned<fid_cntr> counter;  ///< of the kinds that are `counted`
    Owned<fid_ep> endpoint;
    sockaddr_in name{};

private:
    bool wait(fi_cq_tagged_entry& entry, fi_addr_t* from, Party* other, bool good);
};

/// Runs `work` until it says that it was taken; both sides read meanwhile.
template <class Work>
void until_taken(Party& one, Party* other, Work&& work) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(patience_ms);
    ssize_t answer = -FI_EAGAIN;
    while (answer == -FI_EAGAIN && std::chrono::steady_clock::now() < end) {
        answer = work();
        if (answer == 0) return;
        one.read();
        if (other != nullptr) other->read();
    }
    ADD_FAILURE() << fi_strerror(static_cast<int>(-answer));
}

/// Two of them that know each other.
struct Couple {
    explicit Couple(const fi_info* wanted = nullptr) : a(wanted), b(wanted) {
        to_b = a.knows(b);
        to_a = b.knows(a);
    }
    Party a;
    Party b;
    fi_addr_t to_a = FI_ADDR_UNSPEC;
    fi_addr_t to_b = FI_ADDR_UNSPEC;
};

/// This thread, and those that it begins, on the processor where it is.
class OneProcessor {
public:
    OneProcessor() {
        EXPECT_EQ(sched_getaffinity(0, sizeof before_, &before_), 0);
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(sched_getcpu(), &one);
        EXPECT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    }
    ~OneProcessor() { sched_setaffinity(0, sizeof before_, &before_); }
    OneProcessor(const OneProcessor&) = delete;
    OneProcessor& operator=(const OneProcessor&) = delete;

private:
    cpu_set_t before_;
};

}  // namespace scene
