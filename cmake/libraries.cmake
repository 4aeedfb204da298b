# The two shared libraries. libvia.so is made of all modules; libvipl.so links it and exports VIPL's
# names, nothing else.

# Finishes shared library <target>: exports what <map> names, never unloads, misses no symbol.
function(via_shared_library target map)
    set_target_properties(${target} PROPERTIES
        INTERPROCEDURAL_OPTIMIZATION ${VIA_LTO} LINK_DEPENDS ${map})
    get_target_property(type ${target} TYPE)
    if(type STREQUAL "MODULE_LIBRARY")
        via_only_with_lto(${target})
    endif()
    target_link_options(${target} PRIVATE -Wl,--version-script=${map} -Wl,-z,nodelete)
    if(NOT VIA_SANITIZE)  # a sanitizer's own symbols come with the program
        target_link_options(${target} PRIVATE -Wl,-z,defs)
    endif()
endfunction()

set(api ${PROJECT_SOURCE_DIR}/src/api)

get_property(modules GLOBAL PROPERTY VIA_MODULE_LIBRARIES)
list(TRANSFORM modules REPLACE "(.+)" "$<TARGET_OBJECTS:\\1>" OUTPUT_VARIABLE objects)
add_library(via SHARED ${objects})
set_target_properties(via PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION 0 LINKER_LANGUAGE CXX)
# The objects are all there already; linking the modules brings the libraries that they need.
target_link_libraries(via PUBLIC via_headers PRIVATE ${modules})
via_shared_library(via ${api}/via.map)
add_library(OpenVIA::via ALIAS via)  # as find_package() names it

add_library(vipl SHARED ${api}/vipl_names.c)
foreach(target via_api vipl)  # tests/abi compares the types of what is exported
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-g>)
endforeach()
foreach(target via vipl)  # with which what is optimised is compiled when it is linked
    target_link_options(${target} PRIVATE $<$<CONFIG:Release>:-g>)
endforeach()
set_target_properties(vipl PROPERTIES VERSION 1.0 SOVERSION 1)
target_include_directories(vipl PRIVATE ${VIA_MODULE_ROOT}/api)
target_link_libraries(vipl PUBLIC via_headers PRIVATE via)
via_shared_library(vipl ${api}/vipl.map)
add_library(OpenVIA::vipl ALIAS vipl)
# A program's own search path is not asked for what a library needs, so libvipl finds libvia beside
# itself, wherever the two are installed. Below /usr the system looks anyway.
if(NOT CMAKE_INSTALL_PREFIX STREQUAL "/usr")
    set_target_properties(vipl PROPERTIES INSTALL_RPATH "$ORIGIN")
endif()
# Old programs load it as vipl.so.
add_custom_command(TARGET vipl POST_BUILD VERBATIM
    COMMAND ${CMAKE_COMMAND} -E create_symlink $<TARGET_SONAME_FILE_NAME:vipl> vipl.so
    WORKING_DIRECTORY ${CMAKE_LIBRARY_OUTPUT_DIRECTORY})
