# Installs the build BUILD into FOLDER, then finds, builds and runs the project SOURCE with it, by
# find_package and by pkg-config.
file(REMOVE_RECURSE ${FOLDER})
function(run)
    execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output
                    ERROR_VARIABLE output)
    if(NOT result EQUAL 0)
        message(FATAL_ERROR "${ARGN} ended with ${result}:\n${output}")
    endif()
endfunction()
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${FOLDER}/usr)
set(root ${FOLDER}/usr)
foreach(file include/vipl.h include/via/via.h include/via/via.hpp bin/via share/man/man1/via.1
             share/man/man3/vipl.3 share/man/man5/openvia.5 share/bash-completion/completions/via
             share/openvia/openvia.supp lib/tmpfiles.d/openvia.conf ${LIBDIR}/libvipl.so.1
             ${LIBDIR}/vipl.so ${LIBDIR}/libvia.so ${LIBDIR}/libvia-sockets.so
             ${LIBDIR}/openvia/libvia-record.so)
    if(NOT EXISTS ${root}/${file})
        message(FATAL_ERROR "${file} was not installed")
    endif()
endforeach()
# Where users without a directory of their login meet nobody else shall have been first.
file(STRINGS ${root}/lib/tmpfiles.d/openvia.conf rules REGEX "^[^#]")
if(NOT rules STREQUAL "d /tmp/openvia-0 0700 root root -")
    message(FATAL_ERROR "the rule for systemd-tmpfiles does not make root's directory: ${rules}")
endif()
# Nothing tells where the libraries are but what was installed, and the programs' own search path.
run(${CMAKE_COMMAND} -E env --unset=LD_LIBRARY_PATH ${root}/bin/via info)
execute_process(COMMAND ${root}/bin/via sockets --show -- true OUTPUT_VARIABLE shown)
if(NOT shown MATCHES "LD_PRELOAD=.*${FOLDER}/usr/${LIBDIR}/libvia-sockets.so")
    message(FATAL_ERROR "the installed via does not load the installed library: ${shown}")
endif()

run(${CMAKE_COMMAND} -S ${SOURCE} -B ${FOLDER}/outside -G ${GENERATOR}
    -DCMAKE_MAKE_PROGRAM=${MAKE_PROGRAM} -DCMAKE_PREFIX_PATH=${root})
run(${CMAKE_COMMAND} --build ${FOLDER}/outside)
run(${CMAKE_COMMAND} -E env --unset=LD_LIBRARY_PATH ${FOLDER}/outside/by_vipl)
run(${CMAKE_COMMAND} -E env --unset=LD_LIBRARY_PATH ${FOLDER}/outside/by_via)
# What the library keeps is no leak of the program's.
run(valgrind --error-exitcode=9 --leak-check=full --errors-for-leak-kinds=definite,possible
    --suppressions=${root}/share/openvia/openvia.supp ${FOLDER}/outside/by_vipl)

# Components are the targets' names, and who asks for others is told why there are none.
function(refused component words)
    execute_process(COMMAND ${CMAKE_COMMAND} -S ${SOURCE} -B ${FOLDER}/refused -G ${GENERATOR}
                            -DCMAKE_MAKE_PROGRAM=${MAKE_PROGRAM} -DCMAKE_PREFIX_PATH=${root}
                            -DCOMPONENTS=${component}
                    RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
    string(REGEX REPLACE "[ \n]+" " " output "${output}")
    if(result EQUAL 0 OR NOT output MATCHES "${words}")
        message(FATAL_ERROR "component ${component} is not refused with '${words}':\n${output}")
    endif()
endfunction()
refused(nonsense "has no component nonsense; there are via and vipl")
refused(static "has no archives to link statically")

run(sh -c "PKG_CONFIG_PATH='${root}/${LIBDIR}/pkgconfig'; export PKG_CONFIG_PATH
    unset LD_LIBRARY_PATH
    flags=$(pkg-config --cflags --libs vipl) &&
    eval gcc \"'${SOURCE}/by_vipl.c' $flags -Wl,-rpath,'${root}/${LIBDIR}'\" \\
        -o \"'${FOLDER}/by_pkg_config'\" && '${FOLDER}/by_pkg_config'")
