# Precompiled headers, for who builds without ccache: it would need settings of the user's, and
# saves more by itself.

# A third of what clang spends on a file under sanitizers is the standard library. A release goes
# without, so that its compiler sees whether each file includes what it needs.
if(CMAKE_BUILD_TYPE STREQUAL "Sanitize")
    set(VIA_PRECOMPILED_STD
        <algorithm> <array> <atomic> <bit> <charconv> <chrono> <condition_variable> <cstring>
        <deque> <expected> <fstream> <functional> <map> <memory> <mutex> <optional> <set> <span>
        <sstream> <string> <string_view> <thread> <unordered_map> <utility> <variant> <vector>)
endif()
option(VIA_PRECOMPILED "Precompile headers of others where there is no ccache" ON)

# via_precompiled(<target> code|program|test)
#   Gives a target the headers that are read once for all of its kind: of modules and libraries, of
#   programs (via_program_code), or of tests (via_test_code), which have GoogleTest's besides, a
#   fifth or more of their compile time. Call it when the target's compile options are complete.
function(via_precompiled target kind)
    set(headers ${VIA_PRECOMPILED_STD})
    if(kind STREQUAL "test")
        list(APPEND headers <gtest/gtest.h>)
    endif()
    if(NOT VIA_PRECOMPILED OR CMAKE_CXX_COMPILER_LAUNCHER OR NOT headers)
        return()
    endif()
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
        # g++ 12 then takes system headers for ours, and warns of strings in them where it inlines.
        target_compile_options(${target} PRIVATE -Wno-array-bounds -Wno-stringop-overflow)
    endif()
    get_target_property(type ${target} TYPE)
    set(donor precompiled_${kind}_pic)
    if(type STREQUAL "EXECUTABLE")
        set(donor precompiled_${kind}_pie)
    endif()
    if(NOT TARGET ${donor})
        file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/${donor}.cpp CONTENT "int main() {}\n")
        if(type STREQUAL "EXECUTABLE")
            add_executable(${donor} ${CMAKE_BINARY_DIR}/${donor}.cpp)
        else()
            add_library(${donor} STATIC ${CMAKE_BINARY_DIR}/${donor}.cpp)
        endif()
        if(kind STREQUAL "test")
            target_link_libraries(${donor} PRIVATE GTest::gtest Threads::Threads)
            via_test_code(${donor})
        elseif(kind STREQUAL "program")
            via_program_code(${donor})
        endif()
        via_without_lto(${donor})
        target_precompile_headers(${donor} PRIVATE ${headers})
    endif()
    get_target_property(in_c ${target} SOURCES)
    list(FILTER in_c INCLUDE REGEX "\\.c$")
    # A unity file of C would ask for the headers again.
    set_source_files_properties(${in_c} PROPERTIES SKIP_PRECOMPILE_HEADERS ON
                                SKIP_UNITY_BUILD_INCLUSION ON)
    target_precompile_headers(${target} REUSE_FROM ${donor})
endfunction()
