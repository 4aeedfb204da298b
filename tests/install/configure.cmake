# Configures the tree SOURCE into FOLDER as it is without ccache, with precompiled headers: our own
# builds have ccache and would not show what is wrong there. OPTIONS: of CMake.
file(REMOVE_RECURSE ${FOLDER})
execute_process(
    COMMAND ${CMAKE_COMMAND} -E env --unset=CMAKE_C_COMPILER_LAUNCHER
            --unset=CMAKE_CXX_COMPILER_LAUNCHER
            ${CMAKE_COMMAND} -S ${SOURCE} -B ${FOLDER} -G ${GENERATOR}
            -DCMAKE_MAKE_PROGRAM=${MAKE_PROGRAM} -DVIA_CCACHE= ${OPTIONS}
    RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
if(NOT result EQUAL 0 OR output MATCHES "CMake (Deprecation )?Warning")
    message(FATAL_ERROR "configuring with '${OPTIONS}' ended with ${result}:\n${output}")
endif()
file(GLOB headers ${FOLDER}/precompiled_*.cpp)
if(NOT headers)
    message(FATAL_ERROR "no header is to be precompiled: this was not a build without ccache")
endif()
file(REMOVE_RECURSE ${FOLDER})
