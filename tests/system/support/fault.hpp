// Makes one system call of a child fail: the child asks the kernel to stop at every call of one
// kind (a seccomp filter), and the parent decides for each whether it is carried out.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

#include "support/child.hpp"

namespace system_test {

/// What a fault is: the nth call of that number, from 1, fails with `error`. nth 0: none does.
/// Calls that wake others are not counted: no kernel refuses them.
struct Fault {
    int call = 0;
    std::uint32_t nth = 0;
    int error = 0;
};

/// Child: from now on every such call waits for the parent's word. Returns the descriptor on which
/// the parent hears of them, or -1 and errno: not allowed here.
int stop_at_calls(int call);

/// Parent: decides about the child's calls until the object goes; those are then all carried out.
class FaultGiver {
public:
    /// `listener` is the child's descriptor.
    FaultGiver(const Child& child, int listener, const Fault& fault);
    ~FaultGiver();
    FaultGiver(const FaultGiver&) = delete;
    FaultGiver& operator=(const FaultGiver&) = delete;

    /// Calls are counted, and one of them fails, only while armed.
    void arm(bool on) { armed_ = on; }
    std::uint32_t calls() const { return calls_; }
    bool given() const { return given_; }

private:
    void serve();
    bool answer();

    Fault fault_;
    int listener_ = -1;
    std::atomic<bool> armed_ = false;
    std::atomic<bool> stop_ = false;
    std::atomic<std::uint32_t> calls_ = 0;
    std::atomic<bool> given_ = false;
    std::thread thread_;
};

}  // namespace system_test
