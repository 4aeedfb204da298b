// A NIC, its registered arena, one completion queue perhaps, and VIs connected to the other side's,
// all through vipl.h. The calls a benchmark repeats, with their failures in words.
#pragma once

#include <via/via.h>
#include <vipl.h>

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "bench/channel.hpp"
#include "bench/link.hpp"

namespace via::bench {

enum class Took { one, nothing, failed };

// Used by the measuring thread only; the error handler runs on a thread of the library.
class ViaPort {
public:
    ViaPort(Link& link, DeviceOptions options, std::string discriminator)
        : link_(link), options_(std::move(options)), discriminator_(std::move(discriminator)) {}
    ~ViaPort() { close(); }
    ViaPort(const ViaPort&) = delete;
    ViaPort& operator=(const ViaPort&) = delete;

    // Both sides at once. Afterwards VI number i here is connected to number i there. Idle VIs
    // have a receive posted; to the active ones the caller posts.
    Status open();
    void close();

    // The same by steps, where it is not two sides that meet: NIC and VIs, then each connection.
    Status open_alone();
    Status accept(std::uint32_t vi, const std::string& discriminator);
    Status request(std::uint32_t vi, const std::string& discriminator);

    bool has_one_queue() const { return options_.like.cq; }
    bool exported() const { return options_.exported; }
    std::uint32_t vi_count() const { return options_.like.vis + 1; }
    // Of credits and other empty messages: the first one, but where data comes to it that goes the
    // other way, one more, or credits would take the receives of data.
    std::uint32_t control_vi() const { return options_.like.both_ways ? vi_count() : 0; }
    std::uint64_t max_transfer_bytes() const { return nic_attributes_.MaxTransferSize; }
    const std::string& failure() const { return failure_; }

    // The descriptor must lie in the arena. False: see failure().
    bool post_send(std::uint32_t vi, VIP_DESCRIPTOR* descriptor);
    // Fetches the word; what is added to it is 0, so that it still says which message it is of.
    bool post_atomic(std::uint32_t vi, VIP_DESCRIPTOR* descriptor);
    bool post_receive(std::uint32_t vi, VIP_DESCRIPTOR* descriptor);
    // Several in order, at most as many as the question posts at once.
    bool post_sends(std::uint32_t vi, std::span<VIP_DESCRIPTOR* const> descriptors);
    bool post_receives(std::uint32_t vi, std::span<VIP_DESCRIPTOR* const> descriptors);

    // Takes one completed descriptor, of the queue named or, with a completion queue, of any. While
    // polling it looks once and may find nothing; while blocking it sleeps.
    Took take(bool& receive, std::uint32_t vi, VIP_DESCRIPTOR*& descriptor);
    // The same by one look at a VI's own queue for all that are done, as far as `descriptors` has
    // room: `count` of them.
    Took take_many(bool receive, std::uint32_t vi, std::span<VIP_DESCRIPTOR*> descriptors,
                   VIP_UINT32& count);

    // Segments of this side's arena and of the other side's.
    VIP_DATA_SEGMENT local(std::byte* at, std::uint64_t bytes) const;
    VIP_ADDRESS_SEGMENT remote(const std::byte* same_place_here) const;

private:
    Status open_nic();
    Status make_vis();
    Status post_idle_receives();
    Status connect_all();
    Status make_segment(VIP_MEM_ATTRIBUTES& attributes);
    Status allow_atomics();
    Status import_segment();
    bool posted(VIP_RETURN code, const char* call);
    Took took(VIP_RETURN code, const char* call, VIP_DESCRIPTOR* descriptor);
    static void on_error(VIP_PVOID context, VIP_ERROR_DESCRIPTOR* error);

    Link& link_;
    DeviceOptions options_;
    std::string discriminator_;
    std::string failure_;
    std::atomic<bool> closing_{false};
    VIP_NIC_HANDLE nic_ = nullptr;
    VIP_NIC_ATTRIBUTES nic_attributes_{};
    VIP_PROTECTION_HANDLE tag_ = nullptr;
    VIP_MEM_HANDLE memory_ = 0;
    std::vector<VIP_MEM_HANDLE> handles_;  // memory_ for each of several descriptors
    VIP_CQ_HANDLE cq_ = nullptr;
    std::vector<VIP_VI_HANDLE> vis_;
    int waits_without_result_ = 0;
};

}  // namespace via::bench
