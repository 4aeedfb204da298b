// SPDX-License-Identifier: Apache-2.0
// A port, which is a discriminator of VIA's, and the thread that waits there for requests.
#pragma once

#include <functional>
#include <memory>
#include <thread>

#include "common.hpp"
#include "connect_request.hpp"
#include "nic.hpp"

namespace via::fabric {

class Listener {
public:
    /// Takes a request and what came along with it; on the listener's thread. What it throws, or
    /// drops, is a rejection.
    using Take = std::function<void(std::unique_ptr<ConnectRequest>, const std::uint8_t* data,
                                    std::size_t length)>;

    explicit Listener(std::shared_ptr<Nic> nic);
    /// Whoever comes meanwhile is rejected.
    ~Listener();
    Listener(const Listener&) = delete;
    Listener& operator=(const Listener&) = delete;

    /// Port 0: any. 0, or an error of libfabric's: FI_EADDRINUSE, FI_ENOMEM.
    int listen(std::uint16_t port, Take take);
    bool is_listening() const { return listener_ != nullptr; }
    /// Where it listens.
    const sockaddr_in& address() const { return address_; }

private:
    bool claim(std::uint16_t port);
    void give_up_port();
    int start();
    static void run(void* self);
    void serve();
    void take_one();
    void stop();

    std::shared_ptr<Nic> nic_;
    sockaddr_in address_;
    Take take_;
    VIA_LISTENER_HANDLE listener_ = nullptr;
    int requests_ = -1;  ///< readable while some wait
    int stop_ = -1;      ///< eventfd: the thread shall end
    std::thread thread_;
};

}  // namespace via::fabric
