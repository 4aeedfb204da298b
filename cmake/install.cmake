# What `cmake --install` puts where: libraries with their links, headers, pkg-config files, a CMake
# package (find_package(OpenVIA)), the command via, its manual pages and shell completion. Debian
# packages of the same three parts come from `cpack` ('./dev package').
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

if(NOT TARGET vipl OR NOT TARGET via_cli)
    message(STATUS "Installing: libvipl or the command via is not there yet")
    return()
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
if(TARGET via_sim_tool)
    install(TARGETS via_sim_tool RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT tools)
endif()
if(TARGET viad)
    install(TARGETS viad RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT tools)
    set_target_properties(viad PROPERTIES INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
endif()
set_target_properties(via_cli PROPERTIES INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")

set(packaging ${PROJECT_SOURCE_DIR}/packaging)
install(FILES ${packaging}/man/via.1 ${packaging}/man/via-sim.1
        DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT tools)
install(FILES ${packaging}/man/viad.8
        DESTINATION ${CMAKE_INSTALL_MANDIR}/man8 COMPONENT tools)
install(FILES ${packaging}/systemd/viad.service
        DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT tools)
install(FILES ${packaging}/man/vipl.3 DESTINATION ${CMAKE_INSTALL_MANDIR}/man3
        COMPONENT development)
install(FILES ${packaging}/man/openvia.5 DESTINATION ${CMAKE_INSTALL_MANDIR}/man5
        COMPONENT library)
install(FILES ${packaging}/completion/via
        DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT tools)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT library)

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

# Debian packages: libopenvia0, libopenvia-dev, openvia-tools, and, where the provider was built,
# openvia-libfabric: it then lies where the distribution's libfabric looks by itself.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME openvia)
set(CPACK_PACKAGE_CONTACT "The OpenVIA authors <openvia@localhost>")
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_SOURCE_DIR}/build/packages)
set(CPACK_COMPONENTS_ALL library development tools)
if(TARGET via_libfabric)
    list(APPEND CPACK_COMPONENTS_ALL libfabric)
endif()
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_STRIP_FILES ON)  # of what debuggers read: most of their size
set(CPACK_COMPONENTS_GROUPING ONE_PER_GROUP)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_LIBRARY_OUTPUT_DIRECTORY})
set(CPACK_DEBIAN_ENABLE_COMPONENT_DEPENDS ON)
set(CPACK_COMPONENT_DEVELOPMENT_DEPENDS library)
set(CPACK_COMPONENT_TOOLS_DEPENDS library)
set(CPACK_COMPONENT_LIBFABRIC_DEPENDS library tools)
set(CPACK_DEBIAN_LIBFABRIC_PACKAGE_NAME openvia-libfabric)
set(CPACK_DEBIAN_LIBFABRIC_PACKAGE_SECTION net)
set(CPACK_DEBIAN_LIBFABRIC_PACKAGE_RECOMMENDS "openmpi-bin, libfabric-bin")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME libopenvia0)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libopenvia-dev)
set(CPACK_DEBIAN_TOOLS_PACKAGE_NAME openvia-tools)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_TOOLS_PACKAGE_SECTION net)
set(summary "Virtual Interface Architecture: messages between processes in user space")
set(CPACK_DEBIAN_LIBRARY_DESCRIPTION "${summary} (libraries)")
set(CPACK_DEBIAN_DEVELOPMENT_DESCRIPTION "${summary} (headers)")
set(CPACK_DEBIAN_TOOLS_DESCRIPTION "${summary} (commands via and via-sim)")
set(CPACK_DEBIAN_LIBFABRIC_DESCRIPTION "${summary} (provider of libfabric, for MPI programs)")
include(CPack)

if(VIA_BUILD_TESTS AND NOT VIA_SANITIZE)
    # Installs into a folder of its own and builds a project outside of the tree against it.
    add_test(NAME install.finds_and_runs
             COMMAND ${CMAKE_COMMAND} -DBUILD=${CMAKE_BINARY_DIR}
                     -DSOURCE=${PROJECT_SOURCE_DIR}/tests/install/outside
                     -DFOLDER=${CMAKE_BINARY_DIR}/installed -DLIBDIR=${CMAKE_INSTALL_LIBDIR}
                     -P ${PROJECT_SOURCE_DIR}/tests/install/run.cmake)
    set_tests_properties(install.finds_and_runs PROPERTIES LABELS unit TIMEOUT 300)
endif()
