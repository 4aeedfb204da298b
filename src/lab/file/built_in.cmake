# toml++, where it was found; CMake leaves out what the compiler looks at anyway.
target_include_directories(via_lab_file SYSTEM PRIVATE ${VIA_TOMLPLUSPLUS})

# The texts of machines/*.toml and machines/hosts/*.toml become a source of module lab/file.
function(via_lab_texts folder result)
    file(GLOB files CONFIGURE_DEPENDS ${folder}/*.toml)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${files})
    set(texts "")
    foreach(file ${files})
        cmake_path(GET file STEM name)
        file(READ ${file} text)
        string(APPEND texts "        {\"${name}\", R\"toml(${text})toml\"},\n")
    endforeach()
    set(${result} "${texts}" PARENT_SCOPE)
endfunction()
via_lab_texts(${CMAKE_CURRENT_SOURCE_DIR}/lab/file/machines machines)
via_lab_texts(${CMAKE_CURRENT_SOURCE_DIR}/lab/file/machines/hosts hosts)
configure_file(${CMAKE_CURRENT_SOURCE_DIR}/lab/file/built_in.cpp.in
               ${CMAKE_CURRENT_BINARY_DIR}/lab_built_in.cpp @ONLY)
target_sources(via_lab_file PRIVATE ${CMAKE_CURRENT_BINARY_DIR}/lab_built_in.cpp)
