# Modules: one library, one include root and one test program per folder of src/.
#
# A module's only include directory is VIA_MODULE_ROOT/<module>, which holds nothing but a link to
# the module itself. So a file reaches its own module and those that its module DEPENDS on;
# tools/tidy checks the same table exactly, where a compiler would let through what a dependency
# depends on.

set(VIA_MODULE_ROOT ${CMAKE_BINARY_DIR}/modules)

# via_module(NAME <module> [ZONE] [APART] [DEPENDS <module>...] [TEST_DEPENDS <module>...]
#            [NARROW <header>...] [LIBS <target>...] [LABELS <label>...])
#   src/<module>/*.cpp becomes via_<module>, src/<module>/*_test.cpp becomes test_<module>.
#   ZONE          belongs to the deterministic zone: no operating system inside.
#   APART         is no part of libvia: programs that want it link it, compiled as tools are.
#   DEPENDS       modules it may include; device means its own headers, device/<medium> one medium.
#   TEST_DEPENDS  modules that its tests may include besides; tests link them too.
#   NARROW        of the modules of these headers, nothing but these headers may be included.
#   LIBS          libraries from outside. LABELS: of its tests, besides `unit`.
function(via_module)
    cmake_parse_arguments(arg "ZONE;APART" "NAME" "DEPENDS;TEST_DEPENDS;NARROW;LIBS;LABELS" ${ARGN})
    string(REPLACE ";" " " row
        "${arg_NAME}|${arg_ZONE}|${arg_DEPENDS}|${arg_TEST_DEPENDS}|${arg_NARROW}")
    set_property(GLOBAL APPEND PROPERTY VIA_MODULE_TABLE "${row}")

    set(folder ${PROJECT_SOURCE_DIR}/src/${arg_NAME})
    if(NOT EXISTS ${folder})
        message(FATAL_ERROR "Module ${arg_NAME} is in the table and has no folder")
    endif()
    string(REPLACE "/" "_" id ${arg_NAME})
    file(GLOB sources CONFIGURE_DEPENDS ${folder}/*.cpp)
    file(GLOB headers CONFIGURE_DEPENDS ${folder}/*.hpp ${folder}/*.h)
    set(tests ${sources})
    list(FILTER tests INCLUDE REGEX "_test\\.cpp$")
    list(FILTER sources EXCLUDE REGEX "_test\\.cpp$")

    if(sources)
        add_library(via_${id} STATIC ${sources})
        set(scope PUBLIC)
        set(kind code)
        if(arg_APART)
            set(kind program)
            # g++ takes files that are compiled together for headers, whose types must have linkage.
            target_compile_options(via_${id} PRIVATE
                $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
        else()
            set_property(GLOBAL APPEND PROPERTY VIA_MODULE_LIBRARIES via_${id})
            set_target_properties(via_${id} PROPERTIES INTERPROCEDURAL_OPTIMIZATION ${VIA_LTO})
        endif()
        via_precompiled(via_${id} code)
        via_together(via_${id} ${kind})
    else()
        add_library(via_${id} INTERFACE)
        set(scope INTERFACE)
    endif()
    via_module_include_root(${arg_NAME} "${headers}" root)
    target_include_directories(via_${id} ${scope} ${root})
    via_link_modules(via_${id} ${scope} ${arg_DEPENDS})
    if(arg_LIBS)
        target_link_libraries(via_${id} ${scope} ${arg_LIBS})
    endif()

    if(tests AND VIA_BUILD_TESTS)
        via_gtest(NAME test_${id} SOURCES ${tests} LINK via_${id} LABELS unit ${arg_LABELS}
                  PREFIX ${id})
        via_link_modules(test_${id} PRIVATE ${arg_TEST_DEPENDS})
    endif()
endfunction()

# Links `target` with those of the named modules that are there.
function(via_link_modules target scope)
    foreach(module ${ARGN})
        string(REPLACE "/" "_" id ${module})
        if(TARGET via_${id})
            target_link_libraries(${target} ${scope} via_${id})
        endif()
    endforeach()
endfunction()

# A folder with media below it shows only its own headers, each by a link; others link the folder.
function(via_module_include_root module headers result)
    string(REPLACE "/" "_" id ${module})
    set(root ${VIA_MODULE_ROOT}/${id})
    set(folder ${PROJECT_SOURCE_DIR}/src/${module})
    if(module STREQUAL "device")
        file(REMOVE_RECURSE ${root}/device)
        file(MAKE_DIRECTORY ${root}/device)
        foreach(header ${headers})
            cmake_path(GET header FILENAME name)
            file(CREATE_LINK ${header} ${root}/device/${name} SYMBOLIC)
        endforeach()
    else()
        cmake_path(GET module PARENT_PATH above)
        file(MAKE_DIRECTORY ${root}/${above})
        file(CREATE_LINK ${folder} ${root}/${module} SYMBOLIC)
    endif()
    set(${result} ${root} PARENT_SCOPE)
endfunction()

# via_media([DEPENDS <module>...] [ZONE <medium>...] [OUTSIDE_ZONE <module>...]
#           [TEST_DEPENDS <module>...] [LABELS <label>...])
#   Makes a module of every folder of src/device. Those that are not in the zone may include the
#   modules of OUTSIDE_ZONE, too. A medium's optional medium.cmake may link its own libraries to
#   via_device_${medium}. The global property VIA_MEDIA lists them, for tests; so does
#   the generated header media.inc, for module compose: a line VIA_MEDIUM(<medium>) each.
function(via_media)
    cmake_parse_arguments(arg "" "" "DEPENDS;ZONE;OUTSIDE_ZONE;TEST_DEPENDS;LABELS" ${ARGN})
    file(GLOB entries CONFIGURE_DEPENDS LIST_DIRECTORIES true ${PROJECT_SOURCE_DIR}/src/device/*)
    set(lines "")
    foreach(entry ${entries})
        file(GLOB sources CONFIGURE_DEPENDS ${entry}/*.cpp)
        if(NOT IS_DIRECTORY ${entry} OR NOT sources)
            continue()
        endif()
        cmake_path(GET entry FILENAME medium)
        if(TARGET via_device_${medium})
            continue()  # what media share, a module of its own
        endif()
        set(zone "")
        set(more ${arg_OUTSIDE_ZONE})
        if(medium IN_LIST arg_ZONE)
            set(zone ZONE)
            set(more "")
        endif()
        via_module(NAME device/${medium} ${zone} DEPENDS ${arg_DEPENDS} ${more}
                 TEST_DEPENDS ${arg_TEST_DEPENDS} LABELS ${arg_LABELS})
        include(${entry}/medium.cmake OPTIONAL)
        set_property(GLOBAL APPEND PROPERTY VIA_MEDIA ${medium})
        string(APPEND lines "VIA_MEDIUM(${medium})\n")
    endforeach()
    file(CONFIGURE OUTPUT ${VIA_MODULE_ROOT}/generated/media.inc CONTENT "${lines}" @ONLY)
endfunction()

# The table for tools/tidy: a line "module|zone|depends|test depends|narrow" each.
function(via_write_module_table)
    get_property(rows GLOBAL PROPERTY VIA_MODULE_TABLE)
    list(JOIN rows "\n" text)
    file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/modules.txt CONTENT "${text}\n" @ONLY)
endfunction()
