// SPDX-License-Identifier: Apache-2.0
#include "scene.hpp"

#include <poll.h>

#include <chrono>
#include <cstdlib>
#include <thread>

namespace scene {
namespace {

/// Before anything asks libfabric, which reads its environment once.
const bool environment = [] {
    setenv("FI_PROVIDER_PATH", VIA_PROVIDER_FOLDER, 1);
    setenv("FI_VIA_DEVICE", "shm", 0);
    return true;
}();

using Clock = std::chrono::steady_clock;

}  // namespace

Info hints(std::uint64_t caps) {
    Info info(fi_allocinfo(), fi_freeinfo);
    info->caps = caps;
    info->mode = FI_CONTEXT | FI_RX_CQ_DATA;
    info->ep_attr->type = FI_EP_MSG;
    info->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
    info->fabric_attr->prov_name = strdup("via");
    return info;
}

Info find(const fi_info* wanted, int* error, const char* node, const char* service,
          std::uint64_t flags) {
    fi_info* found = nullptr;
    const int answer = fi_getinfo(version, node, service, flags, wanted, &found);
    if (error != nullptr)
        *error = answer;
    else
        EXPECT_EQ(answer, 0) << fi_strerror(-answer);
    return {found, fi_freeinfo};
}

Side::Side(const Options& wanted) : options(wanted), info(nullptr, fi_freeinfo) {
    const Info asked = hints();
    asked->tx_attr->op_flags = options.op_flags;
    asked->tx_attr->size = options.queue_size;
    asked->rx_attr->size = options.queue_size;
    asked->domain_attr->threading = options.threading;
    info = find(asked.get());
    fid_fabric* new_fabric = nullptr;
    EXPECT_EQ(fi_fabric(info->fabric_attr, &new_fabric, nullptr), 0);
    fabric.reset(new_fabric);
    fid_domain* new_domain = nullptr;
    EXPECT_EQ(fi_domain(new_fabric, info.get(), &new_domain, nullptr), 0);
    domain.reset(new_domain);
    fi_eq_attr event_attributes{};
    event_attributes.wait_obj = options.event_wait;
    fid_eq* new_events = nullptr;
    EXPECT_EQ(fi_eq_open(new_fabric, &event_attributes, &new_events, nullptr), 0);
    events.reset(new_events);
    fid_cq* new_queue = nullptr;
    EXPECT_EQ(fi_cq_open(new_domain, &options.queue, &new_queue, nullptr), 0);
    queue.reset(new_queue);
}

Owned<fid_pep> Side::listen(sockaddr_in& address, fid_eq* other_events) {
    fid_pep* opened = nullptr;
    EXPECT_EQ(fi_passive_ep(fabric.get(), info.get(), &opened, nullptr), 0);
    Owned<fid_pep> listener(opened);
    fid_eq* told = other_events != nullptr ? other_events : events.get();
    EXPECT_EQ(fi_pep_bind(opened, &told->fid, 0), 0);
    EXPECT_EQ(fi_listen(opened), 0);
    std::size_t length = sizeof address;
    EXPECT_EQ(fi_getname(&opened->fid, &address, &length), 0);
    EXPECT_EQ(length, sizeof address);
    EXPECT_NE(address.sin_port, 0);
    return listener;
}

Owned<fid_ep> Side::endpoint(fi_info* from, fid_eq* other_events) {
    fid_ep* opened = nullptr;
    EXPECT_EQ(fi_endpoint(domain.get(), from != nullptr ? from : info.get(), &opened, this), 0);
    Owned<fid_ep> endpoint(opened);
    fid_eq* told = other_events != nullptr ? other_events : events.get();
    EXPECT_EQ(fi_ep_bind(opened, &told->fid, 0), 0);
    if (options.queue_flags != 0) {
        EXPECT_EQ(fi_ep_bind(opened, &queue->fid, options.queue_flags), 0);
    }
    options.bind_more(opened);
    EXPECT_EQ(fi_enable(opened), 0);
    return endpoint;
}

std::vector<std::uint8_t> Side::expect(std::uint32_t kind, fid_t subject, Info* request) {
    alignas(8) std::array<std::uint8_t, sizeof(fi_eq_cm_entry) + 256> room{};
    std::uint32_t came = ~0U;
    const ssize_t size = fi_eq_sread(events.get(), &came, room.data(), room.size(), patience_ms, 0);
    EXPECT_GE(size, static_cast<ssize_t>(sizeof(fi_eq_cm_entry))) << fi_strerror(-int(size));
    if (size < 0) return {};
    EXPECT_EQ(came, kind);
    const auto* entry = reinterpret_cast<const fi_eq_cm_entry*>(room.data());
    if (subject != nullptr) {
        EXPECT_EQ(entry->fid, subject);
    }
    if (request != nullptr) request->reset(entry->info);
    return {room.begin() + sizeof(fi_eq_cm_entry), room.begin() + size};
}

fi_eq_err_entry Side::expect_error(std::vector<std::uint8_t>& data) {
    alignas(8) std::array<std::uint8_t, 512> room{};
    std::uint32_t came = ~0U;
    EXPECT_EQ(fi_eq_sread(events.get(), &came, room.data(), room.size(), patience_ms, 0),
              -FI_EAVAIL);
    fi_eq_err_entry entry{};
    EXPECT_EQ(fi_eq_readerr(events.get(), &entry, 0), static_cast<ssize_t>(sizeof entry));
    const auto* bytes = static_cast<const std::uint8_t*>(entry.err_data);
    data.assign(bytes, bytes + entry.err_data_size);
    return entry;
}

Owned<fid_mr> Side::memory(const void* begin, std::size_t length, std::uint64_t access) {
    fid_mr* region = nullptr;
    EXPECT_EQ(fi_mr_reg(domain.get(), begin, length, access, 0, 0, 0, &region, nullptr), 0);
    return Owned<fid_mr>(region);
}

fi_cq_data_entry completion(Side& side, Side* other) {
    const auto end = Clock::now() + std::chrono::milliseconds(patience_ms);
    while (Clock::now() < end) {
        fi_cq_data_entry entry{};
        const ssize_t got = fi_cq_read(side.queue.get(), &entry, 1);
        if (got == 1) return entry;
        if (other != nullptr) fi_cq_read(other->queue.get(), nullptr, 0);
        if (got == -FI_EAVAIL) {
            ADD_FAILURE() << fi_strerror(failure(side).err);
            return {};
        }
        EXPECT_EQ(got, -FI_EAGAIN);
        std::this_thread::yield();
    }
    ADD_FAILURE() << "nothing completed";
    return {};
}

fi_cq_err_entry failure(Side& side) {
    const auto end = Clock::now() + std::chrono::milliseconds(patience_ms);
    while (Clock::now() < end) {
        fi_cq_data_entry entry{};
        const ssize_t got = fi_cq_read(side.queue.get(), &entry, 1);
        if (got == -FI_EAVAIL) {
            fi_cq_err_entry error{};
            EXPECT_EQ(fi_cq_readerr(side.queue.get(), &error, 0), 1);
            return error;
        }
        EXPECT_EQ(got, -FI_EAGAIN) << "no error came, but a completion";
        std::this_thread::yield();
    }
    ADD_FAILURE() << "no error came";
    return {};
}

void ask(fid_ep* asking, Side& b, const Owned<fid_pep>& listener, const sockaddr_in& address,
         Info& request) {
    ASSERT_EQ(fi_connect(asking, &address, nullptr, 0), 0);
    b.expect(FI_CONNREQ, &listener->fid, &request);
}

Pair::Pair(const Options& options) : a(options), b(options) {
    listener = b.listen(address);
    connect(left, right);
}

void Pair::connect(Owned<fid_ep>& asking, Owned<fid_ep>& accepting) {
    asking = a.endpoint();
    Info request(nullptr, fi_freeinfo);
    ASSERT_NO_FATAL_FAILURE(ask(asking.get(), b, listener, address, request));
    accepting = b.endpoint(request.get());
    ASSERT_EQ(fi_accept(accepting.get(), nullptr, 0), 0);
    b.expect(FI_CONNECTED, &accepting->fid);
    a.expect(FI_CONNECTED, &asking->fid);
}

std::vector<std::byte> pattern(std::size_t length, unsigned seed) {
    std::vector<std::byte> bytes(length);
    std::uint32_t state = seed * 2654435761U + 1;
    for (std::byte& byte : bytes) {
        state = state * 1664525U + 1013904223U;
        byte = static_cast<std::byte>(state >> 24);
    }
    return bytes;
}

ssize_t read_by_descriptor(fid_fabric* fabric, fid_cq* queue, int descriptor, void* entry) {
    fid* waited = &queue->fid;
    for (;;) {
        if (fi_trywait(fabric, &waited, 1) == 0) {
            pollfd one{descriptor, POLLIN, 0};
            const int ready = poll(&one, 1, patience_ms);
            EXPECT_EQ(ready, 1);
            if (ready != 1) return -FI_ETIMEDOUT;
        }
        const ssize_t got = fi_cq_read(queue, entry, 1);
        if (got != -FI_EAGAIN) return got;
    }
}

}  // namespace scene
