# toml++, where it was found; CMake leaves out what the compiler looks at anyway.
target_include_directories(via_lab_file SYSTEM PRIVATE ${VIA_TOMLPLUSPLUS})

# The texts of src/lab/file/machines/*.toml become a source of room lab/file.
file(GLOB files CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/lab/file/machines/*.toml)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${files})
set(machines "")
foreach(file ${files})
    cmake_path(GET file STEM name)
    file(READ ${file} text)
    string(APPEND machines "        {\"${name}\", R\"toml(${text})toml\"},\n")
endforeach()
configure_file(${CMAKE_CURRENT_SOURCE_DIR}/lab/file/built_in.cpp.in
               ${CMAKE_CURRENT_BINARY_DIR}/lab_built_in.cpp @ONLY)
target_sources(via_lab_file PRIVATE ${CMAKE_CURRENT_BINARY_DIR}/lab_built_in.cpp)
