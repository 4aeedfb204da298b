// SPDX-License-Identifier: Apache-2.0
// Two sides with a NIC each, through libfabric's public functions and the provider as it is built.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <netinet/in.h>

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

namespace scene {

inline constexpr std::uint32_t version = FI_VERSION(1, 17);
inline constexpr int patience_ms = 60000;

/// Closes what libfabric opened, with ours to see that it can be closed.
struct Close {
    template <class Object>
    void operator()(Object* object) const {
        EXPECT_EQ(fi_close(&object->fid), 0);
    }
};
template <class Object>
using Owned = std::unique_ptr<Object, Close>;
using Info = std::unique_ptr<fi_info, decltype(&fi_freeinfo)>;

/// Hints for a program that can do with anything.
Info hints(std::uint64_t caps = FI_MSG | FI_RMA);
/// What fi_getinfo answers, or an empty one; `error` is its answer.
Info find(const fi_info* hints, int* error = nullptr, const char* node = nullptr,
          const char* service = nullptr, std::uint64_t flags = 0);

struct Options {
    fi_cq_attr queue{.size = 1024,
                     .flags = 0,
                     .format = FI_CQ_FORMAT_DATA,
                     .wait_obj = FI_WAIT_NONE,
                     .signaling_vector = 0,
                     .wait_cond = FI_CQ_COND_NONE,
                     .wait_set = nullptr};
    fi_wait_obj event_wait = FI_WAIT_NONE;
    std::uint64_t queue_flags = FI_TRANSMIT | FI_RECV;
    std::size_t queue_size = 0;  ///< of an endpoint; 0: the provider's
    std::uint64_t op_flags = 0;
    fi_threading threading = FI_THREAD_UNSPEC;
    std::function<void(fid_ep*)> bind_more = [](fid_ep*) {};
};

/// A fabric of one NIC with a domain and queues.
struct Side {
    explicit Side(const Options& options = {});

    /// A listening passive endpoint; `address` is told.
    Owned<fid_pep> listen(sockaddr_in& address, fid_eq* events = nullptr);
    /// An enabled endpoint; of a request if `from` is its info.
    Owned<fid_ep> endpoint(fi_info* from = nullptr, fid_eq* events = nullptr);
    /// Waits for an event of that kind; its data.
    std::vector<std::uint8_t> expect(std::uint32_t kind, fid_t subject, Info* request = nullptr);
    /// Waits for an error.
    fi_eq_err_entry expect_error(std::vector<std::uint8_t>& data);
    Owned<fid_mr> memory(const void* begin, std::size_t length, std::uint64_t access);

    Options options;
    Info info;
    Owned<fid_fabric> fabric;
    Owned<fid_domain> domain;
    Owned<fid_eq> events;
    Owned<fid_cq> queue;
};

/// `asking` asks for a connection, and `b`, whose the listener is, has the request.
void ask(fid_ep* asking, Side& b, const Owned<fid_pep>& listener, const sockaddr_in& address,
         Info& request);

/// A completion, waited for; fails the test when none comes or it is an error.
fi_cq_data_entry completion(Side& side, Side* other = nullptr);
/// An error, waited for.
fi_cq_err_entry failure(Side& side);

/// Two sides and a connection between them.
struct Pair {
    explicit Pair(const Options& options = {});
    /// One more connection.
    void connect(Owned<fid_ep>& asking, Owned<fid_ep>& accepting);

    Side a;
    Side b;
    sockaddr_in address{};
    Owned<fid_pep> listener;
    Owned<fid_ep> left;
    Owned<fid_ep> right;
};

std::vector<std::byte> pattern(std::size_t length, unsigned seed);
/// One completion of a queue that may be slept on, as a program with a loop over poll() reads it.
ssize_t read_by_descriptor(fid_fabric* fabric, fid_cq* queue, int descriptor, void* entry);

inline void* word(std::uintptr_t number) { return reinterpret_cast<void*>(number); }

}  // namespace scene
