// Assertions of the conformance tests. Soft ones are GoogleTest's EXPECT_...; OK() and require()
// end the role by throwing, so that helpers may return values.
#pragma once

#include <gtest/gtest.h>
#include <vipl.h>

#include <ostream>
#include <source_location>
#include <string>

// GoogleTest finds these by the types' own namespace, which is the global one.
void PrintTo(VIP_RETURN code, std::ostream* out);
void PrintTo(VIP_VI_STATE state, std::ostream* out);
void PrintTo(VIP_ERROR_CODE code, std::ostream* out);

namespace conformance {

using Where = std::source_location;

const char* name_of(VIP_RETURN code);
const char* name_of(VIP_ERROR_CODE code);
/// The bits of a descriptor's Status in words.
std::string status_text(VIP_UINT32 status);

/// Ends the role that throws it; the harness reports it as a failure at `where`.
struct Failure {
    Where where;
    std::string text;
};

/// Ends a role because another one did not reach the point where both should meet.
struct Abandoned {
    Where where;
    std::string text;
};

[[noreturn]] void fail(const std::string& text, Where where = Where::current());
void require(bool holds, const std::string& what, Where where = Where::current());
/// Ends the role unless the call returned VIP_SUCCESS.
void must(VIP_RETURN code, const char* call, Where where = Where::current());

/// Does the descriptor's Status have exactly these bits?
testing::AssertionResult has_status(const VIP_DESCRIPTOR* descriptor, VIP_UINT32 status);
/// Is the descriptor done, with these error bits among others?
testing::AssertionResult failed_with(const VIP_DESCRIPTOR* descriptor, VIP_UINT32 any_of);
testing::AssertionResult flushed(const VIP_DESCRIPTOR* descriptor);

}  // namespace conformance

#define OK(call) ::conformance::must((call), #call)
