// VIPL's things as objects that clean up: a NIC with its errors, memory, one end of a connection.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "support/must.hpp"
#include "support/wait.hpp"

namespace system_test {

/// A VIP_NET_ADDRESS with room for host and discriminator.
class Address {
public:
    Address(const VIP_NIC_ATTRIBUTES& nic, const std::string& discriminator);
    Address() = default;
    VIP_NET_ADDRESS* get() { return &room_.address; }
    bool empty() const { return room_.address.HostAddressLen == 0; }
    /// The same host with another discriminator.
    Address with(const std::string& discriminator) const;

private:
    union Room {
        VIP_NET_ADDRESS address;
        unsigned char bytes[128];
    };
    Room room_{.bytes = {}};
};

/// A NIC handle whose error handler takes notes.
class Nic {
public:
    explicit Nic(const char* name = "shm");
    ~Nic();
    Nic(const Nic&) = delete;
    Nic& operator=(const Nic&) = delete;

    VIP_NIC_HANDLE handle() const { return handle_; }
    void close(Where where = Where::current());
    Address address(const std::string& discriminator) const;
    /// Requests go to that host from now on; otherwise to our own.
    void turn_to(std::string host, Where where = Where::current());
    Address remote(const std::string& discriminator) const;
    /// VipConnectWait; `connection` is set if it succeeds.
    VIP_RETURN wait_request(const std::string& discriminator, VIP_ULONG timeout_ms,
                            VIP_CONN_HANDLE* connection) const;

    /// Waits until the handler was told of `code` about `vi`; fails when the watchdog bites.
    void wait_error(VIP_VI_HANDLE vi, VIP_ERROR_CODE code, Where where = Where::current());
    std::size_t errors(VIP_VI_HANDLE vi, VIP_ERROR_CODE code) const;
    std::size_t errors() const;
    /// All that the handler was told, in words.
    std::string error_text() const;
    void forget_errors();

private:
    static void note(VIP_PVOID context, VIP_ERROR_DESCRIPTOR* error);

    VIP_NIC_HANDLE handle_ = nullptr;
    VIP_NIC_ATTRIBUTES attributes_{};
    Address remote_host_;  ///< no bytes: none was named
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<VIP_ERROR_DESCRIPTOR> errors_;
};

/// Page-aligned registered memory that peers may write and read.
class Memory {
public:
    Memory(Nic& nic, std::size_t bytes, bool remote = true, VIP_PROTECTION_HANDLE tag = nullptr);
    ~Memory();
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;

    std::byte* data() const { return data_; }
    std::size_t bytes() const { return bytes_; }
    VIP_MEM_HANDLE handle() const { return handle_; }
    /// Ends the registration now.
    void deregister(Where where = Where::current());

private:
    Nic& nic_;
    std::size_t bytes_;
    std::byte* data_ = nullptr;
    VIP_MEM_HANDLE handle_ = 0;
};

/// Bytes that only `number` makes, and whether they are there.
void fill(std::byte* at, std::size_t length, std::uint64_t number);
bool holds(const std::byte* at, std::size_t length, std::uint64_t number);

struct Wants {
    VIP_RELIABILITY_LEVEL level = VIP_SERVICE_RELIABLE_DELIVERY;
    std::size_t length = 64;              ///< bytes of each buffer, and the longest message
    unsigned receives = 8;                ///< posted from the start
    unsigned sends = 8;                   ///< buffers to send from
    VIP_CQ_HANDLE queue = nullptr;        ///< for both queues
    VIP_PROTECTION_HANDLE tag = nullptr;  ///< of VI and buffers
    bool remote = true;                   ///< peers may write and read the buffers
};

/// A descriptor that came back.
struct Outcome {
    VIP_DESCRIPTOR* descriptor;
    VIP_RETURN code;  ///< SUCCESS or DESCRIPTOR_ERROR
    unsigned slot;    ///< which of our buffers
    bool ok() const { return code == VIP_SUCCESS; }
    bool flushed() const { return (descriptor->CS.Status & VIP_STATUS_DESC_FLUSHED_ERROR) != 0; }
};

/// A VI, its descriptors and its buffers.
class End {
public:
    explicit End(Nic& nic, const Wants& wants = {});
    /// Disconnects, takes everything off, destroys the VI.
    ~End();
    End(const End&) = delete;
    End& operator=(const End&) = delete;

    Nic& nic() { return nic_; }
    VIP_VI_HANDLE vi() const { return vi_; }
    const Wants& wants() const { return wants_; }
    VIP_VI_STATE state(Where where = Where::current()) const;

    // Connecting
    VIP_RETURN request(const std::string& discriminator, VIP_ULONG timeout_ms);
    /// Asks until somebody listens.
    void connect(const std::string& discriminator, Where where = Where::current());
    void accept(const std::string& discriminator, Where where = Where::current());
    /// Waits for a request and does not answer it yet.
    VIP_CONN_HANDLE wait_request(const std::string& discriminator, Where where = Where::current());

    // Data
    std::byte* receive_buffer(unsigned slot) const;
    std::byte* send_buffer(unsigned slot) const;
    Memory& memory() { return memory_; }
    /// (Re)posts receive `slot`.
    void post_receive(unsigned slot, Where where = Where::current());
    /// Posts send `slot` of what its buffer holds.
    void post_send(unsigned slot, std::size_t length, Where where = Where::current());
    /// RDMA of `slot`'s send buffer to or from the peer's memory; a write carries `immediate`.
    void post_write(unsigned slot, std::uint64_t address, VIP_MEM_HANDLE handle,
                    std::uint32_t immediate, Where where = Where::current());
    void post_read(unsigned slot, std::uint64_t address, VIP_MEM_HANDLE handle,
                   Where where = Where::current());
    /// Takes a descriptor off the queue if one is done.
    std::optional<Outcome> received(Where where = Where::current());
    std::optional<Outcome> sent(Where where = Where::current());
    /// The same, asleep; nothing: the time was up.
    std::optional<Outcome> wait_received(VIP_ULONG timeout_ms, Where where = Where::current());
    std::optional<Outcome> wait_sent(VIP_ULONG timeout_ms, Where where = Where::current());
    /// True when nothing is posted on that queue.
    bool send_queue_empty(Where where = Where::current()) const;
    bool receive_queue_empty(Where where = Where::current()) const;

    void disconnect(Where where = Where::current());
    /// Takes everything off both queues; how many descriptors that were.
    std::size_t drain();

private:
    VIP_DESCRIPTOR* descriptor(bool receive, unsigned slot) const;
    std::optional<Outcome> outcome(bool receive, VIP_RETURN code, VIP_DESCRIPTOR* descriptor,
                                   Where where) const;
    void query(VIP_VI_STATE& state, bool& send_empty, bool& receive_empty, Where where) const;

    Nic& nic_;
    Wants wants_;
    Memory memory_;
    VIP_VI_HANDLE vi_ = nullptr;
};

}  // namespace system_test
