// SPDX-License-Identifier: Apache-2.0
#include "info.hpp"

#include <netdb.h>

#include <algorithm>
#include <memory>

#include "address.hpp"
#include "devices.hpp"
#include "passive_endpoint.hpp"
#include "rdm/wire.hpp"

namespace via::fabric {
namespace {

constexpr std::uint64_t message_caps = FI_MSG | FI_SEND | FI_RECV;
constexpr std::uint64_t rma_caps = FI_RMA | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
constexpr std::uint64_t domain_caps = FI_LOCAL_COMM | FI_REMOTE_COMM;
constexpr std::uint64_t all_caps = message_caps | rma_caps | domain_caps;
/// Of endpoints for datagrams, which match tags.
constexpr std::uint64_t datagram_own_caps =
    FI_TAGGED | FI_DIRECTED_RECV | FI_SOURCE | FI_MULTI_RECV;
constexpr std::uint64_t datagram_caps = all_caps | FI_ATOMIC | FI_RMA_EVENT | datagram_own_caps;
constexpr std::uint64_t memory_caps = rma_caps | FI_ATOMIC | FI_RMA_EVENT;
constexpr std::uint64_t tx_flags =
    FI_INJECT | FI_COMPLETION | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE;
constexpr std::uint64_t tx_order = FI_ORDER_SAS | FI_ORDER_SAW;
/// VIA has one address space per region, makes the handles itself, and touches the pages.
constexpr int rma_mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;

/// Inside a host a copy costs more than a question and its answer, between hosts less.
constexpr std::size_t eager_size_shared = 16384;
constexpr std::size_t eager_size_network = 65536;
constexpr std::size_t eager_size_copied_once = 4096;

using Info = std::unique_ptr<fi_info, decltype(&fi_freeinfo)>;

struct Wish {
    std::uint32_t version;
    std::uint64_t caps;  ///< 0: none
    int mr_mode;         ///< as asked for; only with `has_mr_mode`
    bool has_mr_mode;
    bool rma;        ///< RMA is to be had
    bool datagrams;  ///< an endpoint for datagrams, else a connected one

    std::uint64_t caps_to_have() const { return datagrams ? datagram_caps : all_caps; }
    std::size_t inject_size() const { return datagrams ? rdm::inject_max : inject_size_max; }
    std::size_t iov_limit() const { return datagrams ? 1 : segments_max; }
    std::uint64_t receive_flags() const {
        return datagrams ? FI_COMPLETION | FI_MULTI_RECV : FI_COMPLETION;
    }
    /// Nobody else speaks them.
    std::uint32_t protocol() const { return FI_PROV_SPECIFIC | (datagrams ? 0x564944 : 0x564941); }
    std::uint64_t order() const {
        return datagrams && !rma ? std::uint64_t{FI_ORDER_SAS} : tx_order;
    }
    std::uint64_t completion_order() const {
        return datagrams ? std::uint64_t{FI_ORDER_NONE} : std::uint64_t{FI_ORDER_STRICT};
    }
};

/// Connected endpoints may take their receives from a shared receive context.
bool shares_receives(const fi_ep_attr* wanted, const Wish& wish) {
    return !wish.datagrams && wanted != nullptr && wanted->rx_ctx_cnt == FI_SHARED_CONTEXT;
}

bool endpoint_fits(const fi_ep_attr* wanted, const Wish& wish) {
    if (wanted == nullptr) return true;
    const fi_ep_type type = wish.datagrams ? FI_EP_RDM : FI_EP_MSG;
    return (wanted->type == FI_EP_UNSPEC || wanted->type == type) &&
           (wanted->protocol == FI_PROTO_UNSPEC || wanted->protocol == wish.protocol()) &&
           wanted->max_msg_size <= message_size_max && wanted->msg_prefix_size == 0 &&
           wanted->tx_ctx_cnt <= 1 && wanted->auth_key_size == 0 &&
           (wanted->rx_ctx_cnt <= 1 || shares_receives(wanted, wish));
}

bool transmit_fits(const fi_tx_attr* wanted, const Wish& wish) {
    if (wanted == nullptr) return true;
    return (wanted->caps & ~wish.caps_to_have()) == 0 && (wanted->op_flags & ~tx_flags) == 0 &&
           (wanted->msg_order & ~wish.order()) == 0 &&
           (wanted->comp_order & ~wish.completion_order()) == 0 &&
           wanted->inject_size <= wish.inject_size() && wanted->size <= queue_size_max &&
           wanted->iov_limit <= wish.iov_limit() && wanted->rma_iov_limit <= 1;
}

bool receive_fits(const fi_rx_attr* wanted, const Wish& wish) {
    if (wanted == nullptr) return true;
    return (wanted->caps & ~wish.caps_to_have()) == 0 &&
           (wanted->op_flags & ~wish.receive_flags()) == 0 &&
           (wanted->msg_order & ~wish.order()) == 0 &&
           (wanted->comp_order & ~wish.completion_order()) == 0 &&
           wanted->total_buffered_recv == 0 && wanted->size <= queue_size_max &&
           wanted->iov_limit <= wish.iov_limit();
}

bool wants_progress(const fi_domain_attr* wanted) {
    return wanted != nullptr && (wanted->control_progress == FI_PROGRESS_AUTO ||
                                 wanted->data_progress == FI_PROGRESS_AUTO);
}

bool domain_fits(const fi_domain_attr* wanted, const Wish& wish) {
    if (wanted == nullptr) return true;
    return (wanted->caps & ~domain_caps) == 0 && wanted->mr_key_size <= sizeof(std::uint64_t) &&
           wanted->cq_data_size <= sizeof(VIP_UINT32) &&
           wanted->max_ep_srx_ctx <= (wish.datagrams ? 0 : shared_contexts_max) &&
           wanted->max_ep_stx_ctx == 0 && wanted->auth_key_size == 0 && wanted->mr_iov_limit <= 1;
}

/// Can the program live with the way we register memory? Only RMA needs registered memory at all.
bool memory_fits(const Wish& wish) {
    if (!wish.has_mr_mode || wish.mr_mode == FI_MR_BASIC) return true;
    if (wish.mr_mode == FI_MR_UNSPEC && FI_VERSION_LT(wish.version, FI_VERSION(1, 5))) return true;
    return (wish.mr_mode & FI_MR_SCALABLE) == 0 && (wish.mr_mode & rma_mr_mode) == rma_mr_mode;
}

int mr_mode_for(const Wish& wish) {
    if (FI_VERSION_LT(wish.version, FI_VERSION(1, 5)) ||
        (wish.has_mr_mode && wish.mr_mode == FI_MR_BASIC))
        return FI_MR_BASIC;
    return wish.rma ? rma_mr_mode : 0;
}

bool read_wish(std::uint32_t version, const fi_info* hints, bool datagrams, Wish& wish) {
    wish = {version, 0, 0, false, true, datagrams};
    if (hints == nullptr) return true;
    wish.caps = hints->caps;
    wish.has_mr_mode = hints->domain_attr != nullptr;
    if (wish.has_mr_mode) wish.mr_mode = hints->domain_attr->mr_mode;
    wish.rma = wish.caps == 0 ? memory_fits(wish) : (wish.caps & memory_caps) != 0;
    if (!endpoint_fits(hints->ep_attr, wish) || !transmit_fits(hints->tx_attr, wish) ||
        !receive_fits(hints->rx_attr, wish) || !domain_fits(hints->domain_attr, wish))
        return false;
    if (hints->addr_format != FI_FORMAT_UNSPEC && hints->addr_format != FI_SOCKADDR &&
        hints->addr_format != FI_SOCKADDR_IN)
        return false;
    return (wish.caps & ~wish.caps_to_have()) == 0 && (!wish.rma || memory_fits(wish));
}

std::uint64_t caps_for(const Wish& wish) {
    if (wish.caps == 0) return wish.caps_to_have() & (wish.rma ? ~0ULL : ~memory_caps);
    std::uint64_t caps = wish.caps;
    if ((caps & (FI_MSG | FI_TAGGED)) != 0 && (caps & (FI_SEND | FI_RECV)) == 0)
        caps |= FI_SEND | FI_RECV;
    const std::uint64_t detail = rma_caps & ~FI_RMA;
    if ((caps & (FI_RMA | FI_ATOMIC | FI_RMA_EVENT)) != 0 && (caps & detail) == 0) caps |= detail;
    return caps | domain_caps;
}

void* copy_of(const sockaddr_in& address) {
    void* copy = std::malloc(sizeof address);
    if (copy == nullptr) throw std::bad_alloc();
    return std::memcpy(copy, &address, sizeof address);
}

char* copy_of(const std::string& text) {
    char* copy = strdup(text.c_str());
    if (copy == nullptr) throw std::bad_alloc();
    return copy;
}

std::size_t asked(std::size_t wanted, std::size_t otherwise) {
    return wanted != 0 ? wanted : otherwise;
}

void fill_queues(fi_info& info, const Wish& wish, const fi_info* hints) {
    const fi_tx_attr* tx = hints != nullptr ? hints->tx_attr : nullptr;
    const fi_rx_attr* rx = hints != nullptr ? hints->rx_attr : nullptr;
    *info.tx_attr = {};
    info.tx_attr->caps =
        info.caps & (FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_SEND | FI_READ | FI_WRITE);
    info.tx_attr->mode = info.mode;
    info.tx_attr->op_flags = tx != nullptr ? tx->op_flags : 0;
    info.tx_attr->msg_order = wish.order();
    info.tx_attr->comp_order = wish.completion_order();
    info.tx_attr->inject_size = wish.inject_size();
    info.tx_attr->size = asked(tx != nullptr ? tx->size : 0, queue_size_default);
    info.tx_attr->iov_limit = wish.iov_limit();
    info.tx_attr->rma_iov_limit = wish.rma || !wish.datagrams ? 1 : 0;
    *info.rx_attr = {};
    info.rx_attr->caps = info.caps & (FI_MSG | FI_RMA | FI_ATOMIC | FI_RECV | FI_REMOTE_READ |
                                      FI_REMOTE_WRITE | FI_RMA_EVENT | datagram_own_caps);
    info.rx_attr->mode = info.mode;
    info.rx_attr->op_flags = rx != nullptr ? rx->op_flags : 0;
    info.rx_attr->msg_order = wish.order();
    info.rx_attr->comp_order = wish.completion_order();
    info.rx_attr->size = asked(rx != nullptr ? rx->size : 0, queue_size_default);
    info.rx_attr->iov_limit = wish.iov_limit();
}

void fill_endpoint(fi_ep_attr& attributes, const Wish& wish, const fi_ep_attr* wanted) {
    attributes = {};
    attributes.type = wish.datagrams ? FI_EP_RDM : FI_EP_MSG;
    attributes.protocol = wish.protocol();
    attributes.mem_tag_format = wish.datagrams ? ~std::uint64_t{0} : 0;
    attributes.protocol_version = 1;
    attributes.max_msg_size = message_size_max;
    attributes.tx_ctx_cnt = 1;
    attributes.rx_ctx_cnt = shares_receives(wanted, wish) ? FI_SHARED_CONTEXT : 1;
}

void fill_domain(fi_domain_attr& attributes, const Wish& wish, const fi_info* hints) {
    const fi_domain_attr* wanted = hints != nullptr ? hints->domain_attr : nullptr;
    const auto progress = [&](fi_progress asked_for) {
        // What arrives is matched by who reads completions; by a thread of ours if it must.
        if (wish.datagrams) return wants_progress(wanted) ? FI_PROGRESS_AUTO : FI_PROGRESS_MANUAL;
        return asked_for == FI_PROGRESS_UNSPEC ? FI_PROGRESS_AUTO : asked_for;
    };
    attributes.domain = wanted != nullptr ? wanted->domain : nullptr;
    attributes.threading = wanted != nullptr && wanted->threading != FI_THREAD_UNSPEC
                               ? wanted->threading
                               : FI_THREAD_SAFE;
    attributes.control_progress =
        progress(wanted != nullptr ? wanted->control_progress : FI_PROGRESS_UNSPEC);
    attributes.data_progress =
        progress(wanted != nullptr ? wanted->data_progress : FI_PROGRESS_UNSPEC);
    attributes.resource_mgmt = FI_RM_ENABLED;
    attributes.av_type = wanted != nullptr ? wanted->av_type : FI_AV_UNSPEC;
    attributes.mr_mode = mr_mode_for(wish);
    attributes.mr_key_size = sizeof(VIP_MEM_HANDLE);
    attributes.cq_data_size = sizeof(VIP_UINT32);
    attributes.cq_cnt = 1024;
    // One for datagrams has a completion queue of VIA's to itself.
    attributes.ep_cnt = wish.datagrams ? attributes.cq_cnt : 65536;
    attributes.tx_ctx_cnt = 65536;
    attributes.rx_ctx_cnt = 65536;
    attributes.max_ep_tx_ctx = 1;
    attributes.max_ep_rx_ctx = 1;
    attributes.max_ep_srx_ctx = wish.datagrams ? 0 : shared_contexts_max;
    attributes.cntr_cnt = 65536;
    attributes.mr_iov_limit = 1;
    attributes.caps = domain_caps;
    attributes.mr_cnt = std::size_t{1} << 20;
}

Info describe(const Device& device, const Wish& wish, const fi_info* hints) {
    Info info(fi_allocinfo(), fi_freeinfo);
    if (!info) throw std::bad_alloc();
    info->caps = caps_for(wish);
    // A write with data takes a receive of the program's.
    info->mode = hints == nullptr ? FI_RX_CQ_DATA : hints->mode & FI_RX_CQ_DATA;
    info->addr_format = FI_SOCKADDR_IN;
    if (wish.datagrams) info->mode = 0;
    fill_queues(*info, wish, hints);
    fill_endpoint(*info->ep_attr, wish, hints != nullptr ? hints->ep_attr : nullptr);
    fill_domain(*info->domain_attr, wish, hints);
    info->domain_attr->name = copy_of(device.name);
    info->fabric_attr->name = copy_of(device.network);
    info->fabric_attr->prov_version = provider.version;
    info->fabric_attr->fabric =
        hints != nullptr && hints->fabric_attr != nullptr ? hints->fabric_attr->fabric : nullptr;
    return info;
}

// Addresses -------------------------------------------------------------------------------------

/// What node and service, or the hints, say: 0, or an error of libfabric's.
int resolve(const char* node, const char* service, std::uint64_t flags, const fi_info* hints,
            sockaddr_in& source, sockaddr_in& destination) {
    source = {};
    destination = {};
    // Of another family: nothing of ours is there, or goes there.
    const auto take = [](const void* address, std::size_t length, sockaddr_in& to) {
        if (address == nullptr || length == 0) return true;
        if (!is_socket_address(address, length)) return false;
        std::memcpy(&to, address, sizeof to);
        return true;
    };
    if (hints != nullptr && (!take(hints->src_addr, hints->src_addrlen, source) ||
                             !take(hints->dest_addr, hints->dest_addrlen, destination)))
        return -FI_ENODATA;
    if (node == nullptr && service == nullptr) return 0;
    addrinfo wanted{};
    wanted.ai_family = AF_INET;
    wanted.ai_socktype = SOCK_STREAM;
    wanted.ai_flags = ((flags & FI_SOURCE) != 0 ? AI_PASSIVE : 0) |
                      ((flags & FI_NUMERICHOST) != 0 ? AI_NUMERICHOST : 0);
    addrinfo* found = nullptr;
    if (getaddrinfo(node, service, &wanted, &found) != 0) return -FI_ENODATA;
    sockaddr_in& to = (flags & FI_SOURCE) != 0 ? source : destination;
    // Without a node a service names a port of ours.
    if (node != nullptr || (flags & FI_SOURCE) != 0)
        std::memcpy(&to, found->ai_addr, sizeof to);
    else
        source.sin_port = reinterpret_cast<sockaddr_in*>(found->ai_addr)->sin_port;
    freeaddrinfo(found);
    return 0;
}

bool is_loopback(const sockaddr_in& address) {
    return (ntohl(address.sin_addr.s_addr) >> 24) == 127;
}

/// Is the NIC at the source that the program names? Any source, and loopback's, mean this host.
bool is_at(const Device& device, const sockaddr_in& source) {
    return source.sin_family == 0 || source.sin_addr.s_addr == htonl(INADDR_ANY) ||
           source.sin_addr.s_addr == device.address.sin_addr.s_addr;
}

bool is_named(const Device& device, const fi_info* hints) {
    if (hints == nullptr) return true;
    const char* domain = hints->domain_attr != nullptr ? hints->domain_attr->name : nullptr;
    const char* fabric = hints->fabric_attr != nullptr ? hints->fabric_attr->name : nullptr;
    return (domain == nullptr || device.name == domain) &&
           (fabric == nullptr || device.network == fabric);
}

/// A program that searches wants one way to everybody, not all there are: with several that look
/// alike an MPI library deals them out to its ranks.
bool is_search(const fi_info* hints) {
    return hints != nullptr && hints->caps != 0 &&
           (hints->domain_attr == nullptr || hints->domain_attr->name == nullptr);
}

/// Is that this host by another of its names? A NIC has one address.
bool is_here(const sockaddr_in& address, const Device& device, const std::vector<Device>& all) {
    if (device.name != "shm")
        return !device.name.starts_with("shm") && address.sin_addr.s_addr == htonl(INADDR_LOOPBACK);
    return std::ranges::any_of(all, [&](const Device& other) {
        return other.address.sin_addr.s_addr == address.sin_addr.s_addr;
    });
}

void place(fi_info& info, const Device& device, const std::vector<Device>& all,
           const sockaddr_in& source, const sockaddr_in& destination) {
    sockaddr_in own = device.address;
    own.sin_port = source.sin_port;
    info.src_addr = copy_of(own);
    info.src_addrlen = sizeof own;
    if (destination.sin_family == 0) return;
    sockaddr_in peer = destination;
    if (is_here(peer, device, all)) peer.sin_addr = device.address.sin_addr;
    info.dest_addr = copy_of(peer);
    info.dest_addrlen = sizeof peer;
}

std::size_t parameter(const char* name, std::size_t otherwise) {
    std::size_t wanted = 0;
    return fi_param_get_size_t(&provider, name, &wanted) == 0 ? wanted : otherwise;
}

bool is_set(const char* name, bool otherwise) {
    int wanted = 0;
    return fi_param_get_bool(&provider, name, &wanted) == 0 ? wanted != 0 : otherwise;
}

}  // namespace

bool wants_progress(const fi_info& info) { return wants_progress(info.domain_attr); }
bool offers_datagrams() { return is_set("rdm", false); }
bool stores_are_wanted() { return is_set("stores", true); }
bool one_copy_is_wanted(bool otherwise) { return is_set("one_copy", otherwise); }

std::size_t transfer_size() {
    return std::clamp(parameter("max_transfer_size", transfer_size_max), std::size_t{4096},
                      transfer_size_max);
}

std::size_t eager_size(bool in_shared_memory) {
    return parameter("eager_size", in_shared_memory ? eager_size_shared : eager_size_network);
}

std::size_t eager_size_one_copy() { return parameter("eager_size", eager_size_copied_once); }

std::size_t unexpected_size_max() { return parameter("max_unexpected_size", SIZE_MAX); }

namespace {

/// The NICs that fit, the best first.
class Answer {
public:
    Answer(const fi_info* hints, std::vector<Device> devices, sockaddr_in destination, fid_t handle)
        : hints_(hints), devices_(std::move(devices)), destination_(destination), handle_(handle) {}

    void add(const Wish& wish, const sockaddr_in& source) {
        bool any = false;
        for (const Device& device : devices_) {
            if (!is_named(device, hints_) || !is_at(device, source)) continue;
            if (any && is_search(hints_)) return;
            any = true;
            Info info = describe(device, wish, hints_);
            place(*info, device, devices_, source, destination_);
            info->handle = handle_;
            *end_ = info.release();
            end_ = &(*end_)->next;
        }
    }
    void add_here_or_anywhere(const Wish& wish, sockaddr_in source) {
        fi_info** const before = end_;
        add(wish, source);
        if (end_ != before || !is_loopback(source)) return;
        source.sin_addr.s_addr = htonl(INADDR_ANY);
        add(wish, source);
    }
    fi_info* release() { return std::exchange(first_, nullptr); }

    ~Answer() { fi_freeinfo(first_); }
    Answer(const Answer&) = delete;
    Answer& operator=(const Answer&) = delete;

private:
    const fi_info* hints_;
    const std::vector<Device> devices_;
    const sockaddr_in destination_;
    fid_t const handle_;
    fi_info* first_ = nullptr;
    fi_info** end_ = &first_;
};

/// libfabric's own layers ask with this flag for what they stand on. It comes through to providers.
constexpr std::uint64_t asked_by_layer = std::uint64_t{1} << 59;

}  // namespace

int get_info(std::uint32_t version, const char* node, const char* service, std::uint64_t flags,
             const fi_info* hints, fi_info** answer) {
    return guarded([&] {
        // Layers come first in libfabric's answer, and programs that choose a provider by the
        // beginning of its name would never see ours behind them.
        if ((flags & asked_by_layer) != 0 && offers_datagrams()) return -FI_ENODATA;
        // Who names no type of endpoint hears of both; connected ones come first.
        std::vector<Wish> wishes;
        for (const bool datagrams : {false, true}) {
            Wish wish;
            if ((!datagrams || offers_datagrams()) && read_wish(version, hints, datagrams, wish))
                wishes.push_back(wish);
        }
        if (wishes.empty()) return -FI_ENODATA;
        sockaddr_in source;
        sockaddr_in destination;
        if (const int error = resolve(node, service, flags, hints, source, destination))
            return error;
        // An endpoint may take over a passive endpoint's address.
        fid_t const handle = hints != nullptr ? hints->handle : nullptr;
        const bool takes_over = handle != nullptr && PassiveEndpoint::find(handle, source);
        Answer found(hints, find_devices(), destination, takes_over ? handle : nullptr);
        for (const Wish& wish : wishes) found.add_here_or_anywhere(wish, source);
        *answer = found.release();
        return *answer != nullptr ? 0 : -FI_ENODATA;
    });
}

}  // namespace via::fabric
