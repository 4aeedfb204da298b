# Examples: programs of one file each, and a test that runs them as a user would.

# via_example(NAME <target> SOURCE <file> TEST <shell>)
#   bin/<target>, and test examples.<target>: the shell script, in a directory of its own, with the
#   folder of all examples in front of PATH. Besides, the program alone, with an argument that no
#   program has, must show how it is used and end with 2.
function(via_example)
    # PARSE_ARGV keeps the semicolons of the script.
    cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME;SOURCE;TEST" "")
    via_program(NAME ${arg_NAME} SOURCES ${arg_SOURCE} LINK vipl via Threads::Threads)
    if(NOT VIA_BUILD_TESTS)
        return()
    endif()
    # In directories of their own: neither other tests nor runs of other builds get in their way.
    set(here ${CMAKE_CURRENT_BINARY_DIR}/${arg_NAME})
    file(MAKE_DIRECTORY ${here}_run ${here}_usage)
    add_test(NAME examples.${arg_NAME} COMMAND sh -c "
mkdir -p -m 0700 \"$XDG_RUNTIME_DIR\" || exit 1
PATH=\"$<TARGET_FILE_DIR:${arg_NAME}>:$PATH\"
${arg_TEST}" WORKING_DIRECTORY ${here}_run)
    add_test(NAME examples.${arg_NAME}_usage
             COMMAND sh -c "\"$<TARGET_FILE:${arg_NAME}>\" nonsense of no use 2>said
test $? -eq 2 && grep -q ^usage: said" WORKING_DIRECTORY ${here}_usage)
    set_tests_properties(examples.${arg_NAME} examples.${arg_NAME}_usage PROPERTIES
                         LABELS unit TIMEOUT 120)
    set_tests_properties(examples.${arg_NAME} PROPERTIES
                         ENVIRONMENT "XDG_RUNTIME_DIR=${here}_run/runtime")
endfunction()
