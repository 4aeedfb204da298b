#include "device/datagram/datagram_device.hpp"

namespace via::device::datagram {

DatagramDevice::DatagramDevice(std::unique_ptr<Port> port, const DatagramOptions& options)
    : port_(std::move(port)), options_(options), capabilities_{} {}
DatagramDevice::~DatagramDevice() = default;
void DatagramDevice::resolve(const NetAddress&, std::uint64_t) {}
Status DatagramDevice::listen(const Discriminator& discriminator) {
    return port_->listen(discriminator);
}
void DatagramDevice::unlisten(const Discriminator& discriminator) {
    port_->unlisten(discriminator);
}
HostAddress DatagramDevice::peer_address(PathId) const { return {}; }
bool DatagramDevice::reserve(PathId, std::uint32_t, std::uint32_t, FrameSlot&) { return false; }
void DatagramDevice::transmit(PathId) {}
void DatagramDevice::abandon(PathId) {}
std::uint32_t DatagramDevice::notify() { return 0; }
std::size_t DatagramDevice::reap(std::span<Reaped>) { return 0; }
std::size_t DatagramDevice::receive(std::span<Frame>) { return 0; }
bool DatagramDevice::release() { return false; }
void DatagramDevice::condemn(PathId, const char*) {}
bool DatagramDevice::next_event(PathEvent&) { return false; }
Time DatagramDevice::next_deadline() const { return port_->next_deadline(); }
void DatagramDevice::service(Time now) { port_->service(now); }
void DatagramDevice::set_waiting_for_room(PathId) {}
bool DatagramDevice::has_work() { return port_->has_work(); }
std::size_t DatagramDevice::wake_words(std::span<WakeWord> words) { return words.size() + 1; }
PathStatistics DatagramDevice::statistics(PathId) const { return {}; }

}  // namespace via::device::datagram
