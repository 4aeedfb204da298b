#include "harness/test.hpp"

#include <sched.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>

#include "harness/stage.hpp"

namespace conformance {

namespace {

/// GoogleTest's side of a test on one stage.
class OnStage : public testing::Test {
public:
    OnStage(void (*plan)(conformance::Test&), Stage& stage) : plan_(plan), stage_(stage) {}

private:
    void TestBody() override {
        conformance::Test test;
        plan_(test);
        stage_.run(test.plans());
    }

    void (*plan_)(conformance::Test&);
    Stage& stage_;
};

}  // namespace

Registered::Registered(const char* name, void (*plan)(Test&), unsigned needs, Where where) {
    for (Stage* stage : stages()) {
        if ((needs & ~stage->has()) != 0) continue;
        testing::RegisterTest(stage->name().c_str(), name, nullptr, nullptr, where.file_name(),
                              static_cast<int>(where.line()),
                              [=]() -> testing::Test* { return new OnStage(plan, *stage); });
    }
}

bool act_out(const RolePlan& plan, Stage& stage, Lines& lines, std::size_t index) {
    SCOPED_TRACE("in role " + plan.name);
    try {
        Role role(stage, lines, index);
        plan.act(role);
        return true;
    } catch (const Failure& failure) {
        ADD_FAILURE_AT(failure.where.file_name(), static_cast<int>(failure.where.line()))
            << failure.text;
    } catch (const Abandoned& abandoned) {
        ADD_FAILURE_AT(abandoned.where.file_name(), static_cast<int>(abandoned.where.line()))
            << "given up: " << abandoned.text;
    } catch (const std::exception& error) {
        ADD_FAILURE() << "the role threw: " << error.what();
    }
    return false;
}

// Waiting -----------------------------------------------------------------------------------------

Role::Patience::Patience(Role& role, const char* what, Where where)
    : role_(role), what_(what), where_(where), started_ms_(role.stage_.now_ms()) {}

void Role::Patience::pause() {
    role_.stage_.pause();
    if (++pauses_ % 64 != 0) return;
    if (role_.stage_.now_ms() - started_ms_ > static_cast<long>(patience_ms))
        fail(std::string("waited without result until ") + what_, where_);
}

std::string Stage::host_name(const std::string&) const {
    char name[256] = {};
    require(gethostname(name, sizeof name - 1) == 0, "this host has a name");
    return name;
}

std::string Stage::device_on_own_host(const std::string& role) const { return device_name(role); }

std::chrono::seconds watchdog() {
    const char* text = std::getenv("VIA_TEST_SECONDS");
    return std::chrono::seconds(text != nullptr ? std::strtol(text, nullptr, 10) : 100);
}

void Stage::pause() { sched_yield(); }

long Stage::now_ms() const {
    using namespace std::chrono;
    return duration_cast<milliseconds>(steady_clock::now().time_since_epoch()).count();
}

std::shared_ptr<Nic> Stage::open_nic(Role& role) {
    return std::make_shared<Nic>(role.device_name());
}

// Role --------------------------------------------------------------------------------------------

Role::Role(Stage& stage, Lines& lines, std::size_t index)
    : stage_(stage), lines_(lines), index_(index) {}

Role::~Role() {
    nic_.reset();
    lines_.hang_up(index_);
}

const std::string& Role::name() const { return lines_.roles()[index_]; }

Nic& Role::nic() {
    if (!nic_) nic_ = stage_.open_nic(*this);
    return *nic_;
}

std::string Role::device_name() const {
    return (on_own_host_ ? stage_.device_on_own_host(name()) : stage_.device_name(name())) +
           options_;
}

std::string Role::host_name() const { return stage_.host_name(name()); }

std::string Role::discriminator(std::string_view word) const {
    return lines_.run_id() + "/" + std::string(word);
}

void Role::pause() { stage_.pause(); }

void Role::meet_with(std::string_view role, Where where) {
    constexpr char here = 'm';
    tell(role, here, where);
    require(hear<char>(role, where) == here, "both roles meet at the same point", where);
}

void Role::meet(Where where) {
    constexpr char here = 'm';
    for (const std::string& other : lines_.roles())
        if (other != name()) tell(other, here, where);
    for (const std::string& other : lines_.roles())
        if (other != name())
            require(hear<char>(other, where) == here, "all roles meet at the same point", where);
}

// Thread ------------------------------------------------------------------------------------------

Thread::Thread(Role& role, std::function<void()> act) : role_(role) {
    thread_ = role.stage().start_thread([state = state_, act = std::move(act), name = role.name()] {
        SCOPED_TRACE("in a thread of role " + name);
        try {
            act();
        } catch (...) {
            state->failure = std::current_exception();
        }
        state->ended = true;
    });
}

Thread::~Thread() {
    if (!thread_.joinable()) return;
    try {
        role_.until([this] { return ended(); }, "a thread of the role has ended");
        thread_.join();
    } catch (const Failure&) {
        ADD_FAILURE() << "a thread of role " << role_.name() << " does not end";
        thread_.detach();  // the watchdog ends the program
    }
}

bool Thread::ended() const { return state_->ended; }

void Thread::join(Where where) {
    role_.until([this] { return ended(); }, "the thread has ended", where);
    thread_.join();
    if (state_->failure) std::rethrow_exception(state_->failure);
}

}  // namespace conformance
