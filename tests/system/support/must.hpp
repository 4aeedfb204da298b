// Assertions that end a test or a role by throwing: GoogleTest reports it, a role tells its parent.
#pragma once

#include <vipl.h>

#include <source_location>
#include <stdexcept>
#include <string>

namespace system_test {

using Where = std::source_location;

struct Failure : std::runtime_error {
    using std::runtime_error::runtime_error;
};

const char* name_of(VIP_RETURN code);
const char* name_of(VIP_ERROR_CODE code);

[[noreturn]] void fail(const std::string& text, Where where = Where::current());
void require(bool holds, const std::string& what, Where where = Where::current());
/// Fails with errno unless `holds`.
void require_call(bool holds, const std::string& what, Where where = Where::current());
void must(VIP_RETURN code, const char* call, Where where = Where::current());

}  // namespace system_test

#define OK(call) ::system_test::must((call), #call)
