# What `cmake --install` puts where: libraries with their links, headers, pkg-config files, a CMake
# package (find_package(OpenVIA)), the command via, its manual pages and shell completion. Debian
# packages of the same parts come from `cpack` ('./dev package').
include(CMakePackageConfigHelpers)
# Whatever the umask of who installs.
set(CMAKE_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE
    GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS ${CMAKE_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS})

if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}" OR IS_ABSOLUTE "${CMAKE_INSTALL_BINDIR}")
    message(FATAL_ERROR "CMAKE_INSTALL_LIBDIR and CMAKE_INSTALL_BINDIR have to be relative to the "
                        "prefix: what is installed finds its parts from where it lies.")
endif()

install(TARGETS via vipl
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library NAMELINK_COMPONENT development)
install(CODE "
    set(libraries \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}\")
    file(CREATE_LINK libvipl.so.1 \"\${libraries}/vipl.so\" SYMBOLIC)" COMPONENT library)
install(FILES ${PROJECT_SOURCE_DIR}/include/vipl.h TYPE INCLUDE COMPONENT development)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/via TYPE INCLUDE COMPONENT development
        FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
install(TARGETS via_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT tools)
install(TARGETS via_sim_tool RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT tools)
install(TARGETS viad RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT tools)
set_target_properties(viad PROPERTIES INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
set_target_properties(via_cli PROPERTIES INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")

set(packaging ${PROJECT_SOURCE_DIR}/packaging)
install(FILES ${packaging}/man/via.1 ${packaging}/man/via-sim.1
        DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT tools)
install(FILES ${packaging}/man/viad.8
        DESTINATION ${CMAKE_INSTALL_MANDIR}/man8 COMPONENT tools)
configure_file(${packaging}/systemd/viad.service.in ${CMAKE_BINARY_DIR}/viad.service @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/viad.service
        DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT tools)
install(FILES ${packaging}/systemd/openvia.conf DESTINATION lib/tmpfiles.d COMPONENT library)
install(FILES ${packaging}/valgrind/openvia.supp
        DESTINATION ${CMAKE_INSTALL_DATADIR}/openvia COMPONENT development)
install(FILES ${packaging}/man/vipl.3 DESTINATION ${CMAKE_INSTALL_MANDIR}/man3
        COMPONENT development)
install(FILES ${packaging}/man/openvia.5 DESTINATION ${CMAKE_INSTALL_MANDIR}/man5
        COMPONENT library)
install(FILES ${packaging}/completion/via
        DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT tools)
# In no package: every Debian has this licence.
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT license)

# pkg-config and find_package. Both find the prefix from where they lie, for it is chosen when it is
# installed: cmake --install build/release --prefix FOLDER.
file(RELATIVE_PATH via_prefix_from_pkgconfig
     ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" via_prefix_from_pkgconfig "${via_prefix_from_pkgconfig}")
foreach(name vipl via)
    configure_file(${packaging}/${name}.pc.in ${CMAKE_BINARY_DIR}/${name}.pc @ONLY)
    install(FILES ${CMAKE_BINARY_DIR}/${name}.pc
            DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
endforeach()
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/OpenVIA)
configure_package_config_file(${packaging}/OpenVIAConfig.cmake.in
    ${CMAKE_BINARY_DIR}/OpenVIAConfig.cmake INSTALL_DESTINATION ${package_folder}
    PATH_VARS CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_LIBDIR)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/OpenVIAConfigVersion.cmake
    COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/OpenVIAConfig.cmake ${CMAKE_BINARY_DIR}/OpenVIAConfigVersion.cmake
        DESTINATION ${package_folder} COMPONENT development)

# Debian packages. Their folders are Debian's own where the prefix is /usr, as preset 'package' has
# it. What is special to Debian lies in packaging/debian. Where libfabric's provider was built there
# is one of it, too: in it the provider lies where the distribution's libfabric looks by itself.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME openvia)
set(CPACK_PACKAGE_CONTACT "The OpenVIA authors <openvia@localhost>")
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_SOURCE_DIR}/build/packages)
set(CPACK_PRE_BUILD_SCRIPTS ${packaging}/debian/parts.cmake)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_STRIP_FILES ON)  # of what debuggers read: most of their size
set(CPACK_COMPONENTS_GROUPING ONE_PER_GROUP)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_LIBRARY_OUTPUT_DIRECTORY})
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY ">=")
set(CPACK_DEBIAN_ENABLE_COMPONENT_DEPENDS ON)

# via_debian_package(COMPONENT NAME SECTION SUMMARY TEXT [NEEDED-COMPONENT...])
function(via_debian_package component name section summary text)
    string(TOUPPER ${component} upper)
    set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${name} PARENT_SCOPE)
    set(CPACK_DEBIAN_${upper}_PACKAGE_SECTION ${section} PARENT_SCOPE)
    set(CPACK_DEBIAN_${upper}_DESCRIPTION "${summary}
The Virtual Interface Architecture for Linux: connected endpoints, registered
memory, descriptors, completion queues, RDMA; as an ordinary user, without
kernel modules or special hardware.

${text}" PARENT_SCOPE)
    set(CPACK_COMPONENT_${upper}_DEPENDS ${ARGN} PARENT_SCOPE)
    set(CPACK_COMPONENTS_ALL ${CPACK_COMPONENTS_ALL} ${component} PARENT_SCOPE)
endfunction()

set(CPACK_COMPONENTS_ALL)
via_debian_package(library libopenvia0 libs "Virtual Interface Architecture (libraries)"
"This package has the libraries: libvipl.so.1, VIPL 1.0, and libvia.so.0.")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SUGGESTS "libssl3")  # where the wire has a key
if(VIA_IPSEC_MB)  # which it makes faster
    string(APPEND CPACK_DEBIAN_LIBRARY_PACKAGE_SUGGESTS ", libipsec-mb1")
endif()
via_debian_package(development libopenvia-dev libdevel
"Virtual Interface Architecture (headers)"
"This package has what programs are built with: vipl.h for VIPL 1.0, via/via.h
for C and via/via.hpp for C++23." library)
via_debian_package(tools openvia-tools net "Virtual Interface Architecture (commands)"
"This package has the commands via, which shows, measures and runs programs,
viad, by which hosts find each other, and via-sim, the simulator." library)
if(TARGET via_libfabric)
    via_debian_package(libfabric openvia-libfabric net
"Virtual Interface Architecture (provider of libfabric)"
"This package has the provider 'via', by which MPI programs use it." library tools)
    set(CPACK_DEBIAN_LIBFABRIC_PACKAGE_RECOMMENDS "openmpi-bin, libfabric-bin")
endif()
if(PROJECT_IS_TOP_LEVEL)
    include(CPack)
endif()

if(VIA_BUILD_TESTS AND NOT VIA_SANITIZE)
    # Installs into a folder of its own and builds a project outside of the tree against it.
    add_test(NAME install.finds_and_runs
             COMMAND ${CMAKE_COMMAND} -DBUILD=${CMAKE_BINARY_DIR}
                     -DGENERATOR=${CMAKE_GENERATOR} -DMAKE_PROGRAM=${CMAKE_MAKE_PROGRAM}
                     -DSOURCE=${PROJECT_SOURCE_DIR}/tests/install/outside
                     -DFOLDER=${CMAKE_BINARY_DIR}/installed -DLIBDIR=${CMAKE_INSTALL_LIBDIR}
                     -P ${PROJECT_SOURCE_DIR}/tests/install/run.cmake)
    set_tests_properties(install.finds_and_runs PROPERTIES LABELS unit TIMEOUT 300)
endif()

# Whoever builds without ccache has precompiled headers, which none of our presets has.
function(via_configure_test name)
    add_test(NAME install.${name}
             COMMAND ${CMAKE_COMMAND} "-DOPTIONS=${ARGN}" -DSOURCE=${PROJECT_SOURCE_DIR}
                     -DFOLDER=${CMAKE_BINARY_DIR}/${name}
                     -DGENERATOR=${CMAKE_GENERATOR} -DMAKE_PROGRAM=${CMAKE_MAKE_PROGRAM}
                     -P ${PROJECT_SOURCE_DIR}/tests/install/configure.cmake)
    set_tests_properties(install.${name} PROPERTIES LABELS "unit;tidy" TIMEOUT 120)
endfunction()
if(VIA_BUILD_TESTS AND PROJECT_IS_TOP_LEVEL AND NOT VIA_SANITIZE AND NOT CMAKE_CROSSCOMPILING)
    via_configure_test(configures_without_ccache -DCMAKE_BUILD_TYPE=Release
                       -DCMAKE_C_COMPILER=${CMAKE_C_COMPILER}
                       -DCMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER})
    find_program(VIA_CLANG clang-19)
    find_program(VIA_CLANGXX clang++-19)
    if(VIA_CLANG AND VIA_CLANGXX)
        via_configure_test(configures_sanitizers_without_ccache -DCMAKE_BUILD_TYPE=Sanitize
                           -DCMAKE_C_COMPILER=${VIA_CLANG} -DCMAKE_CXX_COMPILER=${VIA_CLANGXX}
                           -DVIA_SANITIZE=address,undefined)
    endif()
endif()
