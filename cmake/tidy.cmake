# The checks of tools/tidy as tests, label tidy.

function(via_tidy_test name)
    add_test(NAME tidy.${name} COMMAND ${VIA_PYTHON} -B ${PROJECT_SOURCE_DIR}/tools/tidy/${name}.py
             ${ARGN} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    set_tests_properties(tidy.${name} PROPERTIES LABELS tidy TIMEOUT 300)
endfunction()

via_tidy_test(selftest)
via_tidy_test(includes --table ${CMAKE_BINARY_DIR}/modules.txt)
via_tidy_test(sources --compile-commands ${CMAKE_BINARY_DIR}/compile_commands.json)
via_tidy_test(text)
via_tidy_test(taps)
via_tidy_test(classes)
via_tidy_test(assertions)
via_tidy_test(names)
via_tidy_test(docs)
via_tidy_test(rules)
# Other compilers' and the sanitizers' own symbols would only blur the picture.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND NOT VIA_SANITIZE)
    via_tidy_test(symbols --table ${CMAKE_BINARY_DIR}/modules.txt
                  --archives ${CMAKE_ARCHIVE_OUTPUT_DIRECTORY})
endif()
