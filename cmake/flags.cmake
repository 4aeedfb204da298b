# Compiler and linker settings that hold for every file.

set(CMAKE_CXX_STANDARD 23)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/archives)
set(CMAKE_BUILD_RPATH_USE_ORIGIN ON)

# No NDEBUG: assertions stay on in release, and a test's assert() is never empty.
# -g1: stacks with lines. All of a debugger's details take another third of a file's compile time;
# preset debug has them, and what tests/abi reads (libraries.cmake).
foreach(language C CXX)
    set(CMAKE_${language}_FLAGS_RELEASE "-O2 -g1")
    set(CMAKE_${language}_FLAGS_DEBUG "-O0 -g")
    set(CMAKE_${language}_FLAGS_SANITIZE "-O1 -g1 -fno-omit-frame-pointer")
endforeach()
if(NOT CMAKE_BUILD_TYPE AND PROJECT_IS_TOP_LEVEL)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "Release, Debug or Sanitize" FORCE)
elseif(NOT CMAKE_BUILD_TYPE)
    set(CMAKE_BUILD_TYPE Release)  # ours alone
endif()

if(PROJECT_IS_TOP_LEVEL)
    find_program(VIA_CCACHE ccache)
    if(VIA_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
        set(CMAKE_C_COMPILER_LAUNCHER ${VIA_CCACHE})
        set(CMAKE_CXX_COMPILER_LAUNCHER ${VIA_CCACHE})
    endif()
endif()

add_compile_options(
    -Wall -Wextra -Wshadow -Wconversion -Wundef -Wformat=2 -Wvla
    $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor>
    $<$<COMPILE_LANGUAGE:CXX>:-Woverloaded-virtual>)
# No wide loads of what was just stored in narrow pieces, which these two make of neighbouring
# members: such a load waits until the stores have left the processor's buffer, and did so five
# times a message (docs/diary/2026-11-22.md).
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options(-fno-tree-slp-vectorize -fno-store-merging)
endif()
if(VIA_WERROR)
    add_compile_options(-Werror)
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")  # which warns at link time, too, where it optimises
        add_link_options(-Werror)
    endif()
endif()
if(VIA_CHECKED)
    add_compile_definitions(VIA_CHECKED=1)
endif()
if(VIA_SANITIZE)
    add_compile_options(-fsanitize=${VIA_SANITIZE} -fno-sanitize-recover=all)
    string(REPLACE "fuzzer-no-link," "" link_sanitizers "${VIA_SANITIZE}")
    add_link_options(-fsanitize=${link_sanitizers})
endif()

# Objects carry machine code beside the optimiser's form ("fat"): libraries and tools are optimised
# at link time, the many test programs link the same objects quickly without it.
if(VIA_LTO AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    set(CMAKE_C_COMPILE_OPTIONS_IPO -flto=auto -ffat-lto-objects)
    set(CMAKE_CXX_COMPILE_OPTIONS_IPO -flto=auto -ffat-lto-objects)
endif()
# via_only_with_lto(<target>): nobody links its objects without.
function(via_only_with_lto target)
    if(VIA_LTO AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
        target_compile_options(${target} PRIVATE -fno-fat-lto-objects)
    endif()
endfunction()
function(via_without_lto target)
    set_target_properties(${target} PROPERTIES INTERPROCEDURAL_OPTIMIZATION OFF)
    if(VIA_LTO)
        target_link_options(${target} PRIVATE -fno-lto)
    endif()
endfunction()

# via_program_code(<target>): sources of a tool or an example, which sanitizers need not optimise.
function(via_program_code target)
    target_compile_options(${target} PRIVATE $<$<CONFIG:Sanitize>:-O0>)
endfunction()

# via_test_code(<target>): optimised in a release only, as modules' tests run code in modules'
# headers, and not to the last: with sanitizers that would be half of their compile time, and all of
# -O2 is a quarter more than -O1.
function(via_test_code target)
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1> $<$<CONFIG:Sanitize>:-O0>)
endfunction()

# via_optimised_test(<target>): a test program whose tests need optimised code. Headers precompiled
# for the other tests have other options, and g++ 12 crashes on them now and then.
function(via_optimised_test target)
    target_compile_options(${target} PRIVATE -O2)
    set_target_properties(${target} PROPERTIES DISABLE_PRECOMPILE_HEADERS ON)
endfunction()

# via_together(<target> code|program|test): compiles a target's files several at a time. What most
# of them have in common is GoogleTest or a parser, and the standard library: a third of the time
# and more, for tests, programs and clang-tidy. Code of the libraries' modules only for sanitizers
# and clang-tidy; a release's compiler sees whether each of its files includes what it needs. Names
# without linkage are then seen by other files of the target, too, so each test file has a namespace
# of its own, named after it.
option(VIA_TOGETHER "Compile several files at a time where that is quicker" ON)
function(via_together target kind)
    get_target_property(files ${target} SOURCES)
    list(FILTER files INCLUDE REGEX "\\.cpp$")
    list(LENGTH files count)
    if(NOT VIA_TOGETHER OR count LESS 2)
        return()
    endif()
    if(NOT kind STREQUAL "code" OR CMAKE_BUILD_TYPE STREQUAL "Sanitize")
        set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 12)
    endif()
endfunction()
