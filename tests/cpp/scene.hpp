// Two ends of a connection in one process: over one NIC handle (loopback), over two (shm).
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>
#include <via/via.hpp>

namespace via::test {

using namespace std::chrono_literals;

/// Of everything that surely comes.
inline constexpr auto patience = 60s;

/// The value, or the end of this test with the error's words.
template <class T>
T must(Expected<T> result) {
    if (!result) throw std::runtime_error(result.error().message());
    if constexpr (!std::is_void_v<T>) return std::move(*result);
}

/// A name that no other run on this machine listens to.
inline std::string discriminator(const std::string& word) {
    return word + '.' + std::to_string(getpid());
}

inline std::string_view text_of_bytes(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
inline void write_text(std::span<std::byte> to, std::string_view text) {
    std::memcpy(to.data(), text.data(), text.size());
}

class Scene : public testing::TestWithParam<const char*> {
protected:
    Scene() : first_(must(Nic::open(GetParam()))) {
        if (std::string_view(GetParam()) != "loopback") second_ = must(Nic::open(GetParam()));
    }

    /// The NIC of the end that asks, and of the one that is asked.
    Nic& near() { return first_; }
    Nic& far() { return second_ ? *second_ : first_; }

    /// Connects two idle VIs, the near one asking; the far one shows `answer`.
    void connect(Vi& asking, Vi& asked, std::span<const std::byte> answer = {}) {
        const std::string name = discriminator("pair");
        const Listener listener(far(), name);
        std::thread listening([&] {
            auto request = listener.wait(patience);
            ASSERT_TRUE(request) << request.error().message();
            const auto accepted = request->accept(asked, answer);
            ASSERT_TRUE(accepted) << accepted.error().message();
        });
        const auto connected = asking.connect(must(far().address(name)),
                                              {.timeout = patience, .wait_for_listener = true});
        listening.join();
        must(connected);
    }

private:
    Nic first_;
    std::optional<Nic> second_;
};

inline auto media() { return testing::Values("loopback", "shm"); }

}  // namespace via::test
