// An open NIC handle and what its error handler was told.
#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/address.hpp"
#include "harness/test.hpp"

namespace conformance {

/// The asynchronous errors of a NIC handle, in order of arrival, until somebody takes them.
class ErrorLog {
public:
    void add(const VIP_ERROR_DESCRIPTOR& error);
    /// Takes the first such error off the log. `object` is the VI or CQ concerned.
    std::optional<VIP_ERROR_DESCRIPTOR> take(VIP_PVOID object, VIP_ERROR_CODE code);
    std::size_t count(VIP_PVOID object, VIP_ERROR_CODE code) const;
    /// Everything that was ever logged about `object` and not taken, in words.
    std::string text(VIP_PVOID object) const;

private:
    mutable std::mutex mutex_;
    std::vector<VIP_ERROR_DESCRIPTOR> errors_;
};

/// A NIC handle; closed with the object, unless close() was called. Its error handler fills
/// errors().
class Nic {
public:
    explicit Nic(const std::string& device_name, Where where = Where::current());
    Nic(const Nic&) = delete;
    ~Nic();

    VIP_NIC_HANDLE handle() const { return handle_; }
    const VIP_NIC_ATTRIBUTES& attributes() const { return attributes_; }
    ErrorLog& errors() { return errors_; }
    /// This NIC's host and a discriminator on it.
    Address address(std::string_view discriminator) const;
    /// Waits for an error about a VI or CQ, and takes it off the log.
    VIP_ERROR_DESCRIPTOR wait_error(Role& role, VIP_PVOID object, VIP_ERROR_CODE code,
                                    Where where = Where::current());
    /// Puts our handler back after a test had its own.
    void restore_handler();
    void close(Where where = Where::current());

private:
    VIP_NIC_HANDLE handle_ = nullptr;
    VIP_NIC_ATTRIBUTES attributes_{};
    ErrorLog errors_;
};

/// An attribute set that any NIC takes.
VIP_VI_ATTRIBUTES vi_attributes(VIP_RELIABILITY_LEVEL level = VIP_SERVICE_RELIABLE_DELIVERY);

}  // namespace conformance
