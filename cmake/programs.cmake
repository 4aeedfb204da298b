# Test and fuzz programs, and folders that add themselves.

add_custom_target(tsan_tests)
add_custom_target(fuzz_targets)

# via_test_needs(<what is missing> <package>): where something is not built or tested for want of a
# package of Debian's. './dev' installs it, and wants an error if it is missing all the same.
function(via_test_needs what package)
    if(VIA_REQUIRE_ALL AND VIA_BUILD_TESTS)
        message(FATAL_ERROR "${what} (Debian's package ${package}) is missing, and VIA_REQUIRE_ALL "
                            "is ON: './dev setup test' installs it.")
    endif()
    message(STATUS "${what} (Debian's package ${package}) is missing: what needs it is left out")
endfunction()

# Adds every folder of <parent> that has a CMakeLists.txt.
function(via_add_folders parent)
    file(GLOB lists CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${parent}/*/CMakeLists.txt)
    foreach(list ${lists})
        cmake_path(GET list PARENT_PATH folder)
        add_subdirectory(${folder})
    endforeach()
endfunction()

# via_program(NAME <target> [OUTPUT <file name>] SOURCES <file>... [LINK <target>...])
#   A tool or example: bin/<file name>, optimised as the libraries are.
function(via_program)
    cmake_parse_arguments(arg "" "NAME;OUTPUT" "SOURCES;LINK" ${ARGN})
    add_executable(${arg_NAME} ${arg_SOURCES})
    target_link_libraries(${arg_NAME} PRIVATE ${arg_LINK})
    set_target_properties(${arg_NAME} PROPERTIES INTERPROCEDURAL_OPTIMIZATION ${VIA_LTO})
    via_program_code(${arg_NAME})
    via_precompiled(${arg_NAME} program)
    via_only_with_lto(${arg_NAME})
    if(VIA_SANITIZE)  # a program in C brings their libraries for C++, which the libraries need
        set_target_properties(${arg_NAME} PROPERTIES LINKER_LANGUAGE CXX)
    endif()
    if(arg_OUTPUT)
        set_target_properties(${arg_NAME} PROPERTIES OUTPUT_NAME ${arg_OUTPUT})
    endif()
endfunction()

# via_gtest(NAME <program> SOURCES <file>... [LINK <target>...] [LABELS <label>...]
#           [TIMEOUT <s>] [PREFIX <word>] [SERIAL] [APART])
#   A GoogleTest program; every test of it is a test of ctest, "<prefix>.<suite>.<name>". Where
#   VIA_TESTS_TOGETHER is in ctest's environment ('./dev test') one process runs them all, as test
#   "<prefix>.all": most tests are shorter than the start of a process.
#   The label tsan makes it part of the thread sanitizer's run. SERIAL: not beside other tests.
#   APART: each test always has a process of its own.
function(via_gtest)
    cmake_parse_arguments(arg "SERIAL;APART" "NAME;TIMEOUT;PREFIX" "SOURCES;LINK;LABELS" ${ARGN})
    if(NOT arg_TIMEOUT)
        set(arg_TIMEOUT 600)
    endif()
    string(REGEX REPLACE "^test_" "" name ${arg_NAME})
    if(NOT arg_PREFIX)
        set(arg_PREFIX ${name})
    endif()
    add_executable(${arg_NAME} ${arg_SOURCES})
    target_link_libraries(${arg_NAME} PRIVATE ${arg_LINK} GTest::gtest_main Threads::Threads)
    via_without_lto(${arg_NAME})
    via_test_code(${arg_NAME})
    via_precompiled(${arg_NAME} test)
    via_together(${arg_NAME} test)
    set(properties TIMEOUT ${arg_TIMEOUT})
    set(together_properties "TIMEOUT 1200")
    if(arg_SERIAL)
        list(APPEND properties RUN_SERIAL ON)
        string(APPEND together_properties " RUN_SERIAL ON")
    endif()
    gtest_discover_tests(${arg_NAME} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
                         TEST_PREFIX ${arg_PREFIX}. PROPERTIES ${properties})
    # Its file is read by one of ours, for it loses all labels but the first, and is silent where
    # there is no test.
    get_property(files DIRECTORY PROPERTY TEST_INCLUDE_FILES)
    list(POP_BACK files one_by_one)
    string(REPLACE "${arg_PREFIX}" "${arg_PREFIX}.all" together ${name})
    set(file ${CMAKE_CURRENT_BINARY_DIR}/${arg_NAME}_tests.cmake)
    file(CONFIGURE OUTPUT ${file} @ONLY CONTENT [[
set(program "@CMAKE_RUNTIME_OUTPUT_DIRECTORY@/@arg_NAME@")
set(apart @arg_APART@)
if(DEFINED ENV{VIA_TESTS_TOGETHER} AND NOT apart AND EXISTS "${program}")
    add_test(@together@ "${program}" --gtest_also_run_disabled_tests)
    set_tests_properties(@together@ PROPERTIES LABELS "@arg_LABELS@" @together_properties@)
else()
    include("@one_by_one@")
    if(@arg_NAME@_TESTS)
        set_tests_properties(${@arg_NAME@_TESTS} PROPERTIES LABELS "@arg_LABELS@")
    elseif(EXISTS "${program}")
        add_test(@arg_NAME@_HAS_NO_TESTS false)
    endif()
endif()
]])
    set_property(DIRECTORY PROPERTY TEST_INCLUDE_FILES ${files} ${file})
    if("tsan" IN_LIST arg_LABELS)
        add_dependencies(tsan_tests ${arg_NAME})
    endif()
endfunction()

# via_test_objects(NAME <target> SOURCES <file>... [LINK <target>...])
#   What several test programs share, compiled once; they LINK it.
function(via_test_objects)
    cmake_parse_arguments(arg "" "NAME" "SOURCES;LINK" ${ARGN})
    add_library(${arg_NAME} OBJECT ${arg_SOURCES})
    target_link_libraries(${arg_NAME} PUBLIC ${arg_LINK} GTest::gtest)
    via_test_code(${arg_NAME})
    via_precompiled(${arg_NAME} test)
    via_together(${arg_NAME} test)
endfunction()

# via_fuzz(NAME <name> SOURCES <file>... [LINK <target>...])
#   fuzz_<name>, from sources with LLVMFuzzerTestOneInput. In preset fuzz it searches; in every
#   other it runs the kept inputs of tests/fuzz/corpus/<name> as test "fuzz.<name>".
function(via_fuzz)
    cmake_parse_arguments(arg "" "NAME" "SOURCES;LINK" ${ARGN})
    set(target fuzz_${arg_NAME})
    add_executable(${target} ${arg_SOURCES})
    target_link_libraries(${target} PRIVATE ${arg_LINK} Threads::Threads)
    via_without_lto(${target})
    via_precompiled(${target} code)
    add_dependencies(fuzz_targets ${target})
    if(VIA_FUZZ)
        target_link_options(${target} PRIVATE -fsanitize=fuzzer)
    else()
        if(NOT TARGET fuzz_replay)
            add_library(fuzz_replay OBJECT ${PROJECT_SOURCE_DIR}/cmake/fuzz_replay.cpp)
            via_test_code(fuzz_replay)
        endif()
        target_link_libraries(${target} PRIVATE fuzz_replay)
        add_test(NAME fuzz.${arg_NAME}
                 COMMAND ${target} ${PROJECT_SOURCE_DIR}/tests/fuzz/corpus/${arg_NAME})
        set_tests_properties(fuzz.${arg_NAME} PROPERTIES LABELS fuzz TIMEOUT 120)
    endif()
endfunction()
