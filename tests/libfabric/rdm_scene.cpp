// SPDX-License-Identifier: Apache-2.0
#include "rdm_scene.hpp"

#include <cstdlib>
#include <thread>

namespace scene {
namespace {

/// Before anything asks libfabric, which reads its environment once.
const bool offered = [] {
    setenv("FI_VIA_RDM", "1", 1);
    return true;
}();

using Clock = std::chrono::steady_clock;

}  // namespace

Info datagram_hints() {
    Info info(fi_allocinfo(), fi_freeinfo);
    info->caps = FI_TAGGED | FI_MSG | FI_LOCAL_COMM | FI_REMOTE_COMM | FI_DIRECTED_RECV | FI_SOURCE;
    info->mode = FI_CONTEXT | FI_CONTEXT2;
    info->ep_attr->type = FI_EP_RDM;
    info->tx_attr->msg_order = FI_ORDER_SAS;
    info->rx_attr->msg_order = FI_ORDER_SAS;
    info->tx_attr->op_flags = FI_COMPLETION;
    info->rx_attr->op_flags = FI_COMPLETION;
    info->domain_attr->threading = FI_THREAD_SAFE;
    info->domain_attr->av_type = FI_AV_MAP;
    info->domain_attr->resource_mgmt = FI_RM_ENABLED;
    info->domain_attr->cq_data_size = sizeof(int);
    info->fabric_attr->prov_name = strdup("via");
    return info;
}

Party::Party(const fi_info* wanted, std::uint64_t queue_flags, fi_wait_obj wait_object,
             std::uint64_t counted)
    : info(nullptr, fi_freeinfo) {
    info = find(wanted != nullptr ? wanted : datagram_hints().get());
    fid_fabric* new_fabric = nullptr;
    EXPECT_EQ(fi_fabric(info->fabric_attr, &new_fabric, nullptr), 0);
    fabric.reset(new_fabric);
    fid_domain* new_domain = nullptr;
    EXPECT_EQ(fi_domain(new_fabric, info.get(), &new_domain, nullptr), 0);
    domain.reset(new_domain);
    fi_cq_attr queue_attributes{};
    queue_attributes.format = FI_CQ_FORMAT_TAGGED;
    queue_attributes.wait_obj = wait_object;
    fid_cq* new_queue = nullptr;
    EXPECT_EQ(fi_cq_open(new_domain, &queue_attributes, &new_queue, nullptr), 0);
    queue.reset(new_queue);
    fi_av_attr address_attributes{};
    address_attributes.type = FI_AV_MAP;
    fid_av* new_addresses = nullptr;
    EXPECT_EQ(fi_av_open(new_domain, &address_attributes, &new_addresses, nullptr), 0);
    addresses.reset(new_addresses);
    fid_ep* new_endpoint = nullptr;
    EXPECT_EQ(fi_endpoint(new_domain, info.get(), &new_endpoint, nullptr), 0);
    endpoint.reset(new_endpoint);
    EXPECT_EQ(fi_ep_bind(new_endpoint, &new_addresses->fid, 0), 0);
    EXPECT_EQ(fi_ep_bind(new_endpoint, &new_queue->fid, FI_TRANSMIT | FI_RECV | queue_flags), 0);
    if (counted != 0) {
        fid_cntr* new_counter = nullptr;
        EXPECT_EQ(fi_cntr_open(new_domain, nullptr, &new_counter, nullptr), 0);
        counter.reset(new_counter);
        if ((info->caps & FI_RMA_EVENT) == 0) {
            EXPECT_EQ(fi_ep_bind(new_endpoint, &new_counter->fid, FI_REMOTE_WRITE), -FI_ENOSYS);
        }
        EXPECT_EQ(fi_ep_bind(new_endpoint, &new_counter->fid, counted), 0);
        EXPECT_EQ(fi_ep_bind(new_endpoint, &new_counter->fid, counted), -FI_EINVAL);
    }
    EXPECT_EQ(fi_enable(new_endpoint), 0);
    std::size_t length = sizeof name;
    EXPECT_EQ(fi_getname(&new_endpoint->fid, &name, &length), 0);
    EXPECT_EQ(length, sizeof name);
}

namespace {

fi_addr_t insert(const Party& party, const sockaddr_in& address) {
    fi_addr_t number = FI_ADDR_UNSPEC;
    EXPECT_EQ(fi_av_insert(party.addresses.get(), &address, 1, &number, 0, nullptr), 1);
    return number;
}

}  // namespace

fi_addr_t Party::knows(const Party& other) { return insert(*this, other.name); }

fi_addr_t Party::knows(std::uint16_t port) {
    sockaddr_in address = name;
    address.sin_port = htons(port);
    return insert(*this, address);
}

void Party::post(void* buffer, std::size_t length, std::uint64_t tag, std::uintptr_t context,
                 fi_addr_t from, std::uint64_t ignore) {
    EXPECT_EQ(fi_trecv(endpoint.get(), buffer, length, nullptr, from, tag, ignore, word(context)),
              0);
}

void Party::send(fi_addr_t to, const void* bytes, std::size_t length, std::uint64_t tag,
                 std::uintptr_t context, Party* other) {
    until_taken(*this, other, [&] {
        return fi_tsend(endpoint.get(), bytes, length, nullptr, to, tag, word(context));
    });
}

void Party::inject(fi_addr_t to, const void* bytes, std::size_t length, std::uint64_t tag,
                   std::uint64_t data, Party* other) {
    until_taken(*this, other,
                [&] { return fi_tinjectdata(endpoint.get(), bytes, length, data, to, tag); });
}

Owned<fid_mr> Party::memory(const void* begin, std::size_t length, std::uint64_t access) {
    fid_mr* region = nullptr;
    EXPECT_EQ(fi_mr_reg(domain.get(), begin, length, access, 0, 0, 0, &region, nullptr), 0);
    return Owned<fid_mr>(region);
}

void Party::search(std::uint64_t tag, std::uintptr_t context, std::uint64_t flags, fi_addr_t from) {
    fi_msg_tagged message{};
    message.addr = from;
    message.tag = tag;
    message.context = word(context);
    EXPECT_EQ(fi_trecvmsg(endpoint.get(), &message, flags | FI_COMPLETION), 0);
}

/// False: there was none of that kind, which is a failure of the test.
bool Party::wait(fi_cq_tagged_entry& entry, fi_addr_t* from, Party* other, bool good) {
    const auto end = Clock::now() + std::chrono::milliseconds(patience_ms);
    while (Clock::now() < end) {
        fi_addr_t source = FI_ADDR_UNSPEC;
        const ssize_t got = fi_cq_readfrom(queue.get(), &entry, 1, &source);
        if (got == 1) {
            EXPECT_TRUE(good) << "no error came, but a completion";
            if (from != nullptr) *from = source;
            return good;
        }
        if (got == -FI_EAVAIL) return !good;
        EXPECT_EQ(got, -FI_EAGAIN);
        if (other != nullptr) other->read();
        std::this_thread::yield();
    }
    ADD_FAILURE() << "nothing completed";
    return false;
}

fi_cq_tagged_entry Party::completion(Party* other, fi_addr_t* from) {
    fi_cq_tagged_entry entry{};
    if (!wait(entry, from, other, true)) {
        fi_cq_err_entry error{};
        if (fi_cq_readerr(queue.get(), &error, 0) == 1) ADD_FAILURE() << fi_strerror(error.err);
    }
    return entry;
}

fi_cq_err_entry Party::failure(Party* other) {
    fi_cq_tagged_entry entry{};
    fi_cq_err_entry error{};
    if (wait(entry, nullptr, other, false)) {
        EXPECT_EQ(fi_cq_readerr(queue.get(), &error, 0), 1);
    }
    return error;
}

void Party::expect_nothing() {
    for (int look = 0; look < 200; ++look) {
        fi_cq_tagged_entry entry{};
        EXPECT_EQ(fi_cq_read(queue.get(), &entry, 1), -FI_EAGAIN);
        std::this_thread::yield();
    }
}

}  // namespace scene
