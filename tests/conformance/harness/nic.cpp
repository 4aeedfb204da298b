#include "harness/nic.hpp"

#include <algorithm>
#include <utility>

namespace conformance {

namespace {

void log_error(VIP_PVOID context, VIP_ERROR_DESCRIPTOR* error) {
    static_cast<ErrorLog*>(context)->add(*error);
}

bool is_about(const VIP_ERROR_DESCRIPTOR& error, VIP_PVOID object, VIP_ERROR_CODE code) {
    return error.ErrorCode == code && (error.ViHandle == object || error.CQHandle == object);
}

}  // namespace

void ErrorLog::add(const VIP_ERROR_DESCRIPTOR& error) {
    const std::lock_guard lock(mutex_);
    errors_.push_back(error);
}

std::optional<VIP_ERROR_DESCRIPTOR> ErrorLog::take(VIP_PVOID object, VIP_ERROR_CODE code) {
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(errors_.begin(), errors_.end(), [=](const auto& error) {
        return is_about(error, object, code);
    });
    if (found == errors_.end()) return std::nullopt;
    const VIP_ERROR_DESCRIPTOR error = *found;
    errors_.erase(found);
    return error;
}

std::size_t ErrorLog::count(VIP_PVOID object, VIP_ERROR_CODE code) const {
    const std::lock_guard lock(mutex_);
    return static_cast<std::size_t>(
        std::count_if(errors_.begin(), errors_.end(),
                      [=](const auto& error) { return is_about(error, object, code); }));
}

std::string ErrorLog::text(VIP_PVOID object) const {
    const std::lock_guard lock(mutex_);
    std::string text;
    for (const VIP_ERROR_DESCRIPTOR& error : errors_)
        if (error.ViHandle == object || error.CQHandle == object)
            text += std::string(text.empty() ? "" : ", ") + name_of(error.ErrorCode);
    return text.empty() ? "nothing" : text;
}

Nic::Nic(const std::string& device_name, Where where) {
    must(VipOpenNic(device_name.c_str(), &handle_), ("VipOpenNic " + device_name).c_str(), where);
    must(VipQueryNic(handle_, &attributes_), "VipQueryNic", where);
    restore_handler();
}

Nic::~Nic() {
    if (handle_ == nullptr) return;
    EXPECT_EQ(VIP_SUCCESS, VipCloseNic(handle_));
}

void Nic::restore_handler() {
    EXPECT_EQ(VIP_SUCCESS, VipErrorCallback(handle_, &errors_, log_error));
}

void Nic::close(Where where) {
    must(VipCloseNic(std::exchange(handle_, nullptr)), "VipCloseNic", where);
}

Address Nic::address(std::string_view discriminator) const {
    return {{reinterpret_cast<const char*>(attributes_.LocalNicAddress), attributes_.NicAddressLen},
            discriminator};
}

VIP_ERROR_DESCRIPTOR Nic::wait_error(Role& role, VIP_PVOID object, VIP_ERROR_CODE code,
                                     Where where) {
    std::optional<VIP_ERROR_DESCRIPTOR> error;
    const std::string what = std::string("the error handler hears ") + name_of(code);
    role.until([&] { return (error = errors_.take(object, code)).has_value(); }, what.c_str(),
               where);
    return *error;
}

VIP_VI_ATTRIBUTES vi_attributes(VIP_RELIABILITY_LEVEL level) {
    VIP_VI_ATTRIBUTES attributes{};
    attributes.ReliabilityLevel = level;
    attributes.MaxTransferSize = 65536;
    return attributes;
}

}  // namespace conformance
